//! What a GPU is sold as, as a node's label has it. A label takes 63 letters, digits, `-`, `_` and `.`; what makers
//! print is longer and odder (K8S-08), so the full text is an annotation, and whoever compares goes through here.

use crate::planning::objects::names;

/// `name` as the value of a label: blanks become `-`; what still is no value is cut and gets a hash of all of
/// it. `None` for an empty name.
pub fn product_label(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let joined = words.join("-");
    // Of the name as it was meant, whatever blanks stood in it: a label is its own label.
    (!joined.is_empty()).then(|| names::label_value(&joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k8s_08_what_a_gpu_is_sold_as_becomes_a_value_that_a_label_takes() {
        let label = |name: &str| product_label(name).unwrap();
        assert_eq!(label("NVIDIA GeForce RTX 4090"), "NVIDIA-GeForce-RTX-4090");
        assert_eq!(label(" NVIDIA  H200 "), "NVIDIA-H200", "blanks around it are nobody's");
        assert_eq!(label("NVIDIA-H200"), "NVIDIA-H200", "a label is its own label");
        let long = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition (custom/OEM build 2)";
        let odd = "Radeon\u{ae} RX 7900 XTX";
        for name in [long, odd, "(R)", "\u{5e2e}"] {
            let value = label(name);
            assert!(names::is_label_value(&value), "{name}: {value}");
            assert_eq!(label(name), value, "it is the same for ever");
            assert_eq!(label(&value), value, "a label is its own label");
        }
        assert_ne!(label(long), label(&long.replace('2', "3")), "the hash tells them apart");
        assert_eq!([product_label(""), product_label(" \t ")], [None, None]);
    }
}
