//! Which login a file of them has for a registry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::{Login, Logins, Stored};

fn find(file: &Value, registry: &str, repository: &str) -> Option<Stored> {
    Logins::parse(file.to_string().as_bytes()).unwrap().find(registry, repository)
}

fn login(name: &str) -> Stored {
    Stored::Here(Login::new(name, "pw:x").unwrap())
}

fn entry(name: &str) -> Value {
    json!({ "auth": STANDARD.encode(format!("{name}:pw:x")) })
}

#[test]
fn the_entry_that_says_most_is_taken() {
    let file = json!({ "auths": {
        "https://index.docker.io/v1/": entry("docker"),
        "ghcr.io": entry("all"),
        "ghcr.io/org": entry("org"),
        "https://ghcr.io/org/name/": entry("name"),
        "*.azurecr.io": entry("any"),
        "mine.azurecr.io": entry("mine"),
        "reg.test:5000": { "username": "plain", "password": "pw:x" },
        "out.test": {},
        "broken.test": { "auth": "%%%" },
    }});
    for (registry, repository, wanted) in [
        ("docker.io", "library/x", Some("docker")),
        ("ghcr.io", "other/x", Some("all")),
        ("ghcr.io", "org/x", Some("org")),
        ("ghcr.io", "organisation/x", Some("all")),
        ("ghcr.io", "org/name", Some("name")),
        ("a.azurecr.io", "x", Some("any")),
        ("mine.azurecr.io", "x", Some("mine")),
        ("a.b.azurecr.io", "x", None),
        ("azurecr.io", "x", None),
        ("reg.test:5000", "x", Some("plain")),
        ("reg.test", "x", None),
        ("out.test", "x", None),
        ("broken.test", "x", None),
        ("evilghcr.io", "org/x", None),
    ] {
        assert_eq!(find(&file, registry, repository), wanted.map(login), "{registry}/{repository}");
    }
}

#[test]
fn a_program_that_keeps_logins_is_named() {
    let file = json!({
        "auths": { "ghcr.io": entry("here"), "index.docker.io": {} },
        "credHelpers": { "gcr.io": "gcloud", "bad.test": "../../bin/sh" },
        "credsStore": "desktop",
    });
    let helper = |program: &str, key: &str| {
        Some(Stored::Helper { program: program.to_owned(), key: key.to_owned() })
    };
    for (registry, wanted) in [
        ("ghcr.io", Some(login("here"))),
        ("gcr.io", helper("gcloud", "gcr.io")),
        ("docker.io", helper("desktop", "https://index.docker.io/v1/")),
        ("bad.test", None),
    ] {
        assert_eq!(find(&file, registry, "x"), wanted, "{registry}");
    }
    assert_eq!(find(&json!({}), "ghcr.io", "x"), None);
}

#[test]
fn a_login_is_never_shown_and_goes_as_one_header() {
    let login = Login::new("me", "secret").unwrap();
    assert_eq!(login.basic(), "Basic bWU6c2VjcmV0");
    let file = Logins::parse(br#"{"auths":{"a.test":{"auth":"bWU6c2VjcmV0"}}}"#).unwrap();
    assert!(!format!("{login:?} {file:?}").contains("bWU6"));
    assert!(!format!("{login:?} {file:?}").contains("secret"));
    assert_eq!(Login::new("me", ""), None);
    assert!(Logins::parse(b"[").is_err());
}
