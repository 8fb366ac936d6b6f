//! Where keys are found, in which order, and what they are made of.

use std::collections::BTreeMap;

use crate::openai::Facts;
use crate::routing::{Key, KeyLengths, Said, Source, Strategy};

fn key(strategy: Strategy, headers: &[(&str, &str)], body: &str) -> Option<Key> {
    let headers: BTreeMap<&str, &str> = headers.iter().copied().collect();
    let facts = Facts::read(body.as_bytes()).expect("JSON");
    strategy.key(&Said {
        header: &|name| headers.get(name).copied(),
        json: Some((&facts, body.as_bytes())),
        lengths: KeyLengths::default(),
    })
}

fn session(body: &str) -> String {
    key(Strategy::SessionAffinity, &[], body).expect("a key").text().to_owned()
}

fn prefix(body: &str) -> Key {
    key(Strategy::Prefix, &[], body).expect("a key")
}

const CHAT: &str = r#"{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],"session_id":" s3 "}"#;

#[test]
fn strategies_without_affinity_ask_for_no_key() {
    for strategy in [Strategy::RoundRobin, Strategy::LeastLoaded] {
        assert_eq!(key(strategy, &[("x-session-id", "s")], CHAT), None);
    }
}

#[test]
fn a_session_is_named_by_headers_then_by_the_body_then_by_how_it_begins() {
    let both = [("x-session-id", " s1 "), ("x-conversation-id", "s2")];
    let found = |headers: &[_]| key(Strategy::SessionAffinity, headers, CHAT).expect("a key");
    assert_eq!(found(&both), Key::new(Source::SessionHeader, "s1"));
    assert_eq!(found(&both[1..]), Key::new(Source::ConversationHeader, "s2"));
    assert_eq!(found(&[("x-session-id", "  ")]), Key::new(Source::SessionBody, "s3"));
    let unnamed = CHAT.replace("session_id", "other");
    let begun = key(Strategy::SessionAffinity, &[], &unnamed).expect("a key");
    assert_eq!(begun.source(), Source::SessionMessages);
    assert!(begun.text().starts_with("msg:") && begun.text().len() == 20, "{}", begun.text());
}

#[test]
fn a_session_keeps_its_key_over_its_turns() {
    let turn = |more: &str| {
        session(&format!(
            r#"{{"model":"m","messages":[{{"role":"system","content":"S"}},{{"role":"user","content":"Hi"}}{more}],"temperature":1}}"#
        ))
    };
    let first = turn("");
    let second = r#",{"role":"assistant","content":"Hello"},{"role":"user","content":"Why?"}"#;
    assert_eq!(turn(second), first);
    let tools = r#",{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":"7"},{"role":"system","content":"late"}"#;
    assert_eq!(turn(tools), first);
    assert_ne!(
        turn("").replace('S', "T"),
        session(r#"{"messages":[{"role":"user","content":"Hi"}]}"#)
    );
}

#[test]
fn arrays_of_content_count_and_tell_sessions_apart() {
    let with = |content: &str| {
        session(&format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#))
    };
    assert_eq!(with(r#"[{"type":"text","text":"Hi"}]"#), with(r#""Hi""#));
    assert_ne!(with(r#"[{"type":"text","text":"Ho"}]"#), with(r#""Hi""#));
}

#[test]
fn what_says_nothing_has_no_key() {
    for strategy in [Strategy::SessionAffinity, Strategy::Prefix] {
        for body in [r#"{"prompt":"x"}"#, r#"{"messages":[]}"#, r#"{"session_id":7}"#, "{}"] {
            assert_eq!(key(strategy, &[], body), None, "{strategy}: {body}");
        }
        let said = Said { header: &|_| None, json: None, lengths: KeyLengths::default() };
        assert_eq!(strategy.key(&said), None);
    }
}

#[test]
fn a_prefix_is_named_by_header_then_body_then_prefix_then_by_its_words() {
    let body = r#"{"cache_key":"k2","cacheKey":"k3","prefix":"P","messages":[{"role":"system","content":"S"},{"role":"user","content":"U"}]}"#;
    let header = [("x-flexinfer-cache-key", "k1")];
    let explicit = key(Strategy::Prefix, &header, body).expect("a key");
    assert_eq!(explicit.source(), Source::ExplicitHeader);
    let sources = [
        (Source::ExplicitBody, "exp:", r#""cache_key":"k2","#),
        (Source::ExplicitBody, "exp:", r#""cacheKey":"k3","#),
        (Source::PrefixField, "pfx:", r#""prefix":"P","#),
        (Source::Canonical, "sys:", r#"{"role":"system","content":"S"},"#),
        (Source::SessionFallback, "msg:", r#"{"role":"user","content":"U"}"#),
    ];
    let mut body = body.to_owned();
    for (source, start, field) in sources {
        let found = prefix(&body);
        assert_eq!(found.source(), source, "{body}");
        assert!(found.text().starts_with(start), "{}", found.text());
        body = body.replace(field, "");
    }
}

#[test]
fn an_explicit_key_is_the_same_in_any_case_and_must_be_plain() {
    let header = |text: &str| {
        key(Strategy::Prefix, &[("x-flexinfer-cache-key", text)], "{}")
            .map(|key| key.text().to_owned())
    };
    assert_eq!(header(" Team/A:v1.0_x=- "), header("team/a:v1.0_x=-"));
    assert!(header(&"k".repeat(128)).is_some());
    for bad in ["", "two words", "ключ", "a*b", &"k".repeat(129)] {
        assert_eq!(header(bad), None, "{bad:?}");
    }
    let falls_through = key(
        Strategy::Prefix,
        &[("x-flexinfer-cache-key", "a*b"), ("x-session-id", "s")],
        r#"{"cache_key":"good"}"#,
    );
    assert_eq!(falls_through.map(|key| key.source()), Some(Source::ExplicitBody));
}

#[test]
fn system_prompts_that_begin_alike_have_one_key() {
    let with = |system: &str, user: &str| {
        prefix(&format!(
            r#"{{"messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"{user}"}}]}}"#
        ))
    };
    let long = "long ".repeat(200);
    assert_eq!(with("Be  BRIEF\\n", "a"), with("be brief", "b"));
    assert_eq!(with(&format!("{long}a"), "u"), with(&format!("{long}b"), "u"), "cut at 512 bytes");
    assert_ne!(with("be brief", "u"), with("be long", "u"));
    let japanese = "日本語".repeat(100);
    assert_eq!(with(&format!("{japanese}a"), "u"), with(&format!("{japanese}b"), "u"));
}

#[test]
fn a_document_beside_the_conversation_counts_wherever_it_stands() {
    let system = r#""messages":[{"role":"system","content":"S"}]"#;
    let with = |field: &str| prefix(&format!("{{{field},{system}}}"));
    let expected = with(r#""document_context":"The Text""#);
    assert_eq!(expected.source(), Source::Canonical);
    for field in [
        r#""documentContext":"the text""#,
        r#""context":["the","text"]"#,
        r#""documents":[{"text":"the text"},{"text":"another"}]"#,
        r#""documents":[{"value":"the text"}]"#,
        r#""document_context":" ","documents":["the text"]"#,
    ] {
        assert_eq!(with(field), expected, "{field}");
    }
    assert_ne!(with(r#""other":"The Text""#), expected);
    assert_eq!(prefix(r#"{"context":"x"}"#).source(), Source::Canonical);
}
