//! Keys files as operators write them, and who is found by a key.

use super::*;
use crate::limits::Rate;

const KEY: &str = "sk-alice-1";
/// 2026-11-29T00:00:00Z.
const NOW: i64 = 1_795_910_400;

fn hex(key: &str) -> String {
    use sha2::Digest as _;
    use std::fmt::Write as _;
    sha2::Sha256::digest(key).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}

fn read(text: &str) -> Callers {
    let parsed = parse("keys.yaml", text.as_bytes());
    assert_eq!(parsed.errors, Vec::new());
    parsed.callers
}

fn complaints(text: &str) -> Vec<String> {
    let parsed = parse("keys.yaml", text.as_bytes());
    parsed.errors.iter().map(ToString::to_string).collect()
}

fn caller(callers: &Callers, key: &str, now: i64) -> Result<String, Rejection> {
    let found = callers.identify(Presented::Key(key.as_bytes()), now)?;
    Ok(found.name.to_string())
}

#[test]
fn a_file_says_who_has_a_key_and_what_for() {
    let text = format!(
        "callers:\n- name: alice\n  sha256: {}\n  tenant: team-a\n  models: [qwen, 'llama*']\n  \
         limits: {{requestsPerMinute: 120, concurrentRequests: 4, tokensPerMinute: 1000}}\n  \
         expires: 2027-01-31\n- name: bob\n  sha256: [{}, {}]\n",
        hex(KEY),
        hex("old"),
        hex("new")
    );
    let callers = read(&text);
    let alice = callers.identify(Presented::Key(KEY.as_bytes()), NOW).expect("known");
    assert_eq!(alice.tenant.as_ref().map(|tenant| &*tenant.name), Some("team-a"));
    assert_eq!(alice.models, Allowed::Named(vec!["qwen".into(), "llama*".into()]));
    let limits = CallerLimits {
        requests: Some(Rate::per_minute(120, 2)),
        concurrent: Some(4),
        tokens: Some(Rate::per_minute(1000, 1000)),
    };
    assert_eq!(alice.limits, limits);
    for key in ["old", "new"] {
        assert_eq!(caller(&callers, key, NOW), Ok("bob".into()), "a caller may have two keys");
    }
    assert_eq!(callers.keys(), 3);
}

#[test]
fn callers_of_one_tenant_share_its_limits() {
    let text = format!(
        "tenants:\n- name: team-a\n  limits: {{concurrentRequests: 3}}\n- name: team-b\n\
         callers:\n- {{name: a1, sha256: {}, tenant: team-a}}\n- {{name: a2, sha256: {}, tenant: team-a}}\n\
         - {{name: b, sha256: {}, tenant: team-b}}\n",
        hex("a1"),
        hex("a2"),
        hex("b")
    );
    let callers = read(&text);
    let tenant = |key: &str| {
        let caller = callers.identify(Presented::Key(key.as_bytes()), NOW).expect("known");
        caller.tenant.clone().expect("it has one")
    };
    assert_eq!(tenant("a1").limits.concurrent, Some(3));
    assert!(Arc::ptr_eq(&tenant("a1"), &tenant("a2")));
    assert!(!tenant("b").limits.any());
}

#[test]
fn a_tenant_that_is_not_listed_is_told_so_that_no_typing_error_lifts_a_limit() {
    let with = |tenants: &str| {
        let key = hex(KEY);
        complaints(&format!("{tenants}callers: [{{name: a, sha256: {key}, tenant: team}}]\n"))
    };
    assert_eq!(with(""), Vec::<String>::new(), "without limits it is a word for the log");
    let said = with("tenants: [{name: team-a, limits: {concurrentRequests: 3}}]\n").join("\n");
    assert!(said.contains("keys.yaml:2: tenant: `team` is not in tenants"), "{said}");
    let said = with("tenants:\n- {name: team}\n- {name: team}\n- {limts: {}}\n- 7\n").join("\n");
    for words in [
        "the tenant on line 2 has this name",
        "did you mean limits?",
        "name: missing",
        "expected an object",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(with("tenants: 7\n").join("\n").contains("tenants: must be a list"));
}

#[test]
fn a_key_counts_until_it_expires() {
    let with = |expires| {
        read(&format!("callers: [{{name: a, sha256: {}, expires: {expires}}}]", hex(KEY)))
    };
    let second = with("2026-11-29T00:00:00Z");
    assert_eq!(caller(&second, KEY, NOW - 1), Ok("a".into()));
    assert_eq!(caller(&second, KEY, NOW), Err(Rejection::KeyExpired));
    let day = with("2026-11-29");
    assert_eq!(caller(&day, KEY, NOW + 86_399), Ok("a".into()), "a day counts to its end");
    assert_eq!(caller(&day, KEY, NOW + 86_400), Err(Rejection::KeyExpired));
}

#[test]
fn everything_that_is_wrong_is_told_with_its_line() {
    let text = format!(
        "callers:\n\
         - name: alice\n  sha256: {key}\n  modles: [x]\n\
         - name: alice\n  sha256: {other}\n\
         - sha256: abc\n  expires: soon\n\
         - name: bob\n  sha256: {empty}\n  limits:\n    burst: 3\n    tokensPerMinute: '9'\n\
         - name: eve\n  sha256: {third}\n  models: qwen\n\
         - 7\n\
         - name: c1\n  sha256: {fourth}\n\
         - name: c2\n  sha256: {fourth}\n",
        key = hex(KEY),
        other = hex("other"),
        empty = hex(""),
        third = hex("third"),
        fourth = hex("fourth"),
    );
    insta::assert_snapshot!(complaints(&text).join("\n"));
}

#[test]
fn a_file_of_something_else_is_told() {
    assert_eq!(complaints("callers: []"), Vec::<String>::new(), "nobody has a key");
    assert!(complaints("# later").iter().any(|said| said.contains("says nothing")));
    assert!(complaints("a: [").iter().any(|said| said.contains("not YAML")));
    assert!(complaints("callers: 7").iter().any(|said| said.contains("must be a list")));
    assert!(complaints("keys: []").iter().any(|said| said.contains("keys: unknown")));
}

#[test]
fn sec_01_no_complaint_repeats_a_key() {
    let said = complaints("callers: [{name: a, sha256: sk-secret}]").join("\n");
    assert!(said.contains("sha256") && !said.contains("sk-secret"), "{said}");
}

#[test]
fn sec_01_an_empty_key_never_matches_and_a_newline_is_no_part_of_a_token() {
    let callers = Callers::of_token("");
    assert_eq!(callers.keys(), 0);
    assert_eq!(callers.identify(Presented::Key(b""), NOW), Err(Rejection::KeyUnknown));
    let callers = Callers::of_token("k\n");
    assert_eq!(caller(&callers, "k", NOW), Ok("token".into()));
    let huge = "k".repeat(1 << 20);
    assert_eq!(caller(&callers, &huge, NOW), Err(Rejection::KeyUnknown));
}

#[test]
fn whoever_presents_nothing_or_too_much_is_nobody() {
    let callers = Callers::of_token("k");
    assert_eq!(callers.identify(Presented::Nothing, NOW), Err(Rejection::KeyMissing));
    assert_eq!(callers.identify(Presented::Conflict, NOW), Err(Rejection::KeysConflict));
    assert_eq!(caller(&callers, "K", NOW), Err(Rejection::KeyUnknown));
}

#[test]
fn callers_of_a_file_go_before_the_token_of_the_same_key() {
    let file = read(&format!("callers: [{{name: a, sha256: {}}}]", hex("k")));
    let all = file.with(&Callers::of_token("k")).with(&Callers::of_token("t"));
    assert_eq!(caller(&all, "k", NOW), Ok("a".into()));
    assert_eq!(caller(&all, "t", NOW), Ok("token".into()));
}
