//! Who is let in, what of their head reaches an engine, and which models they see.

use std::path::Path;
use std::sync::Arc;

use flexinfer_core::callers::{Callers, parse};
use flexinfer_gateway::keys::Keys;
use flexinfer_gateway::rules::Rules;
use flexinfer_gateway::secrets::Secrets;
use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::eventually_async;
use flexinfer_testkit::origin::{Action, Origin, answer};

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
/// The digests of `alice` and `bob`.
const ALICE: &str = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
const BOB: &str = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9";

/// Two callers, of whom Bob may use the model `m` only.
pub(crate) fn keys_file() -> String {
    format!("callers:\n- {{name: a, sha256: {ALICE}}}\n- {{name: b, sha256: {BOB}, models: [m]}}\n")
}

pub(crate) fn callers(text: &str) -> Callers {
    let parsed = parse("keys.yaml", text.as_bytes());
    assert_eq!(parsed.errors, Vec::new());
    parsed.callers
}

pub(crate) fn with_keys() -> Rules {
    Rules { keys: Some(Keys::fixed(callers(&keys_file()))), ..Rules::default() }
}

pub(crate) async fn ask(
    world: &World,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request(method, path, headers, body)).await.unwrap();
    client.answer_to(method).await.unwrap()
}

#[tokio::test]
async fn sec_01_whoever_has_a_key_is_let_in_and_nobody_else() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::ruled(engine.address, vec![model("m", None)], with_keys());
    for headers in [
        [("Authorization", "Bearer alice")],
        [("authorization", "bearer  alice ")],
        [("X-Api-Key", "alice")],
        [("api-key", "bob")],
        [("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.bob")],
    ] {
        assert_eq!(ask(&world, "POST", CHAT, &headers, ASK).await.status(), 200, "{headers:?}");
    }
    let huge = format!("Bearer {}", "x".repeat(20_000));
    for headers in [
        vec![],
        vec![("Authorization", "Bearer mallory")],
        vec![("Authorization", "Basic alice")],
        vec![("Authorization", "Bearer")],
        vec![("Authorization", "Bearer alice"), ("Authorization", "Bearer alice")],
        vec![("Authorization", "Bearer alice"), ("api-key", "bob")],
        vec![("Authorization", huge.as_str())],
    ] {
        let refused = ask(&world, "POST", CHAT, &headers, ASK).await;
        assert_eq!(refused.status(), 401, "{headers:?}");
        assert_eq!(refused.json()["error"]["code"], "invalid_api_key");
        assert_eq!(refused.head.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(engine.requests().len(), 5);
    for open in ["/healthz", "/readyz"] {
        assert_eq!(ask(&world, "GET", open, &[], b"").await.status(), 200);
    }
}

#[tokio::test]
async fn a_key_is_asked_for_before_the_body_is_invited() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::ruled(engine.address, vec![model("m", None)], with_keys());
    let mut client = Client::connect(world.address).await.unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    );
    client.send(head.as_bytes()).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 401);
}

#[tokio::test]
async fn http_07_no_credential_reaches_an_engine() {
    // Also not over a second connection, after the first was reset.
    let engine = Origin::start(|recorded| match recorded.index {
        1 => vec![Action::Reset],
        _ => vec![Action::Write(answer(200, &[], b"{}"))],
    })
    .await
    .unwrap();
    let world = World::ruled(engine.address, vec![model("m", None)], with_keys());
    let headers = [
        ("Authorization", "Bearer alice"),
        ("x-api-key", "alice"),
        ("API-Key", "alice"),
        ("Cookie", "session=alice"),
        ("Proxy-Authorization", "Basic alice"),
        ("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.alice"),
    ];
    let path = format!("{CHAT}?api_key=alice&version=1");
    for _ in 0..2 {
        assert_eq!(ask(&world, "POST", &path, &headers, ASK).await.status(), 200);
    }
    for seen in engine.requests() {
        assert!(!format!("{:?}", seen.head).contains("alice"), "{:?}", seen.head);
        assert!(format!("{:?}", seen.head).contains("version=1"));
        assert_eq!(seen.head.header("sec-websocket-protocol"), Some("realtime"));
    }
    assert!(engine.requests().len() >= 2);
}

#[tokio::test]
async fn http_07_without_callers_a_credential_is_between_client_and_engine() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    ask(&world, "POST", CHAT, &[("Authorization", "Bearer engines-own")], ASK).await;
    let seen = &engine.requests()[0].head;
    assert_eq!(seen.header("authorization"), Some("Bearer engines-own"));
}

#[tokio::test]
async fn http_07_an_engine_gets_its_own_key_in_place_of_the_clients() {
    let engine = Origin::answering("{}").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vendor");
    std::fs::write(&file, "sk-engine\n").unwrap();
    let secrets = Arc::new(Secrets::new(Some(folder.path().to_path_buf())));
    let mut secured = model("m", None);
    secured.effective.api_key_secret = Some("vendor".into());
    let models = vec![secured, model("open", None)];
    let world = World::ruled(engine.address, models, Rules { secrets, ..with_keys() });
    let headers = [("Authorization", "Bearer alice"), ("x-api-key", "alice")];
    assert_eq!(ask(&world, "POST", CHAT, &headers, ASK).await.status(), 200);
    assert_eq!(ask(&world, "POST", CHAT, &headers, br#"{"model":"open"}"#).await.status(), 200);
    let seen = |at: usize| engine.requests()[at].head.header("authorization").map(str::to_owned);
    assert_eq!((seen(0), seen(1)), (Some("Bearer sk-engine".into()), None));
    std::fs::write(&file, "sk-next").unwrap();
    let changed = || async {
        ask(&world, "POST", CHAT, &headers, ASK).await;
        let last = engine.requests().pop().unwrap();
        last.head.header("authorization") == Some("Bearer sk-next")
    };
    assert!(eventually_async(BOUND, changed).await);
}

#[tokio::test]
async fn http_08_internal_headers_from_outside_have_no_effect() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let headers = [
        ("X-Flexinfer-Tenant", "evil"),
        ("X_Flexinfer_Tenant", "evil"),
        ("X-FlexInfer-Cluster", "evil"),
        ("X-Forwarded-User", "evil"),
        ("x-gateway-destination-endpoint", "evil"),
        ("X-Flexinfer-Cache-Key", "mine"),
        ("X-Session-ID", "mine"),
    ];
    assert_eq!(ask(&world, "POST", CHAT, &headers, ASK).await.status(), 200);
    let seen = &engine.requests()[0].head;
    assert!(!format!("{seen:?}").contains("evil"), "{seen:?}");
    assert_eq!(seen.header("x-flexinfer-cache-key"), Some("mine"));
    assert_eq!(seen.header("x-session-id"), Some("mine"));
}

#[tokio::test]
async fn http_11_a_preflight_is_answered_here_with_keys_and_without() {
    let engine = Origin::answering("{}").await.unwrap();
    let headers = [
        ("Origin", "http://a"),
        ("Access-Control-Request-Headers", "authorization,x-stainless-os"),
    ];
    for rules in [Rules::default(), with_keys()] {
        let world = World::ruled(engine.address, vec![model("m", None)], rules);
        assert_eq!(ask(&world, "OPTIONS", CHAT, &headers, b"").await.status(), 405);
        assert_eq!(ask(&world, "OPTIONS", "/v1/nowhere", &headers, b"").await.status(), 404);
    }
    assert_eq!(engine.begun(), 0);
}

#[tokio::test]
async fn what_a_caller_may_not_use_does_not_exist_for_it() {
    let engine = Origin::answering("{}").await.unwrap();
    let models = || vec![model("m", None), model("m-secret", None)];
    let world = World::ruled(engine.address, models(), with_keys());
    let bob = [("Authorization", "Bearer bob")];
    let alice = [("Authorization", "Bearer alice")];
    let list = |answer: Answer| answer.json()["data"].as_array().unwrap().len();
    assert_eq!(list(ask(&world, "GET", "/v1/models", &alice, b"").await), 2);
    assert_eq!(list(ask(&world, "GET", "/v1/models", &bob, b"").await), 1);
    assert_eq!(ask(&world, "GET", "/v1/models", &[], b"").await.status(), 401);
    assert_eq!(ask(&world, "GET", "/v1/models/m", &bob, b"").await.status(), 200);

    let secret = br#"{"model":"m-secret"}"#;
    assert_eq!(ask(&world, "POST", CHAT, &alice, secret).await.status(), 200);
    let hidden = ask(&world, "POST", CHAT, &bob, secret).await;
    let unknown = ask(&world, "POST", CHAT, &bob, br#"{"model":"m-secre!"}"#).await;
    let by_path = ask(&world, "GET", "/v1/models/m-secret", &bob, b"").await;
    for answer in [&hidden, &unknown, &by_path] {
        assert_eq!(
            (answer.status(), &answer.json()["error"]["code"]),
            (404, &"model_not_found".into())
        );
    }
    let same = |answer: &Answer, name: &str| answer.text().replace(name, "?");
    assert_eq!(same(&hidden, "m-secret"), same(&unknown, "m-secre!"));
    assert_eq!(engine.requests().len(), 1);
}

#[tokio::test]
async fn a_changed_keys_file_counts_at_once_and_a_faulty_one_never() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.yaml");
    std::fs::write(&file, keys_file()).unwrap();
    let engine = Origin::answering("{}").await.unwrap();
    let keys = Keys::watch(&file, Callers::of_token("token")).unwrap();
    let rules = Rules { keys: Some(keys), ..Rules::default() };
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let status = async |key: &str| {
        let bearer = format!("Bearer {key}");
        ask(&world, "POST", CHAT, &[("Authorization", &bearer)], ASK).await.status()
    };
    assert_eq!((status("alice").await, status("token").await), (200, 200));

    replace(&file, &format!("callers: [{{name: b, sha256: {BOB}}}]"));
    let gone = eventually_async(BOUND, async || status("alice").await == 401).await;
    assert!(gone, "the old key still counts");
    assert_eq!((status("bob").await, status("token").await), (200, 200));

    // What is wrong changes nothing; the right file after it does, so the wrong one was read.
    replace(&file, "callers: [{name: c}]");
    std::fs::write(&file, "").unwrap();
    assert_eq!(status("bob").await, 200);
    replace(&file, &keys_file());
    assert!(eventually_async(BOUND, async || status("alice").await == 200).await);
}

/// Puts a new file in the old one's place, as editors do.
fn replace(file: &Path, text: &str) {
    let beside = file.with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, file).unwrap();
}

#[tokio::test]
async fn a_gateway_does_not_start_with_keys_that_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.yaml");
    let missing = Keys::watch(&file, Callers::default()).err().unwrap();
    assert!(missing.to_string().contains("keys.yaml"), "{missing}");
    std::fs::write(&file, "callers: [{name: a}]").unwrap();
    let faulty = Keys::watch(&file, Callers::default()).err().unwrap();
    assert!(faulty.to_string().contains("keys.yaml:1: sha256: missing"), "{faulty}");
}

#[tokio::test]
async fn sec_04_unknown_names_and_keys_leave_nothing_behind() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::ruled(engine.address, vec![model("m", None)], with_keys());
    let series = || world.metrics.page().unwrap().len();
    let before = series();
    let mut client = Client::connect(world.address).await.unwrap();
    for number in 0..300 {
        let name = format!("m{number}");
        let body = format!(r#"{{"model":"{name}"}}"#);
        let headers = [("Authorization", "Bearer alice"), ("X-Other", name.as_str())];
        client.send(&request("POST", CHAT, &headers, body.as_bytes())).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 404);
    }
    assert_eq!(series(), before);
}

#[tokio::test]
async fn sec_04_no_spelling_of_a_parked_name_is_a_series_of_its_own() {
    let engine = Origin::answering("{}").await.unwrap();
    let mut parked = model("sleeper", None);
    parked.effective.parked = true;
    let world = World::new(engine.address, vec![model("m", None), parked]);
    let asked = async |name: &str| {
        let body = format!(r#"{{"model":"{name}"}}"#);
        let answer = ask(&world, "POST", CHAT, &[], body.as_bytes()).await;
        let said = answer.json()["error"]["message"].to_string();
        assert!(answer.status() == 404 && said.contains("parked"), "{name}: {said}");
    };
    let series = || {
        let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
        let names =
            page.lines().filter_map(|line| line.split_once("model=\"")?.1.split('"').next());
        names.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    for name in
        ["sleeper", "SLEEPER", "sLeEpEr", "sleeper:latest", "Default/Sleeper", "default/sleeper"]
    {
        asked(name).await;
    }
    let expected = ["m", "sleeper"].map(str::to_owned).into();
    assert!(eventually_async(BOUND, || async { series() == expected }).await, "{:?}", series());
}
