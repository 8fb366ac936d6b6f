//! Names made of what users wrote (K8S-07).

use super::super::names::*;

#[test]
fn k8s_07_long_names_stay_apart_and_fit() {
    let lengths = [1, 2, 52, 62, 63, 64, 100, 253];
    let mut made = Vec::new();
    for length in lengths {
        let name = "a".repeat(length);
        let last = format!("{}b", "a".repeat(length - 1));
        made.extend([object(&name), object(&last)]);
        made.extend([with_suffix(&name, "-cache-prefetch"), with_suffix(&last, "-cache-prefetch")]);
    }
    for name in &made {
        assert!(is_service_name(name), "{name}");
    }
    let count = made.len();
    made.sort();
    made.dedup();
    assert_eq!(made.len(), count);
}

#[test]
fn k8s_07_a_cut_name_is_the_same_each_time_and_readable() {
    for (text, name) in [
        ("writer", "writer"),
        ("qwen3.5-8b", "qwen3-5-8b-27911c344d"),
        ("7b-chat", "m-7b-chat-e14c5e1779"),
    ] {
        assert_eq!(object(text), name);
    }
    let long = format!("{}-tail", "a".repeat(51));
    assert!(!with_suffix(&long, "-x").contains("--"), "{}", with_suffix(&long, "-x"));
}

#[test]
fn labels_keep_what_they_may_and_cut_what_they_may_not() {
    assert_eq!(label_value("Qwen_3.5"), "Qwen_3.5");
    assert_eq!(label_value(""), "");
    for text in ["My Engine", "-x", "x-", &"é".repeat(40), &"a".repeat(64), "®"] {
        let value = label_value(text);
        assert!(is_label_value(&value) && !value.is_empty(), "{text}: {value}");
    }
    assert_ne!(label_value("a b"), label_value("a-b"));
}
