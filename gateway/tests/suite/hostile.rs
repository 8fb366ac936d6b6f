//! Requests that two readers could understand in two ways, and names that are none: nothing of them
//! reaches an engine, and every refusal can be read by a program.

use std::time::Duration;

use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::Origin;

use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;

async fn world() -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    (engine, world)
}

/// Sends bytes, and returns the status of what comes back (0 for nothing) and everything after it.
async fn sent(world: &World, bytes: &[u8]) -> (u16, Vec<u8>) {
    let mut client = Client::connect(world.address).await.unwrap();
    // It may be refused before all of it was taken.
    let _ = client.send(bytes).await;
    // A head that never ends is not answered while it may still come.
    let _ = client.finish_sending().await;
    let answer = client.answer().await;
    let status = answer.as_ref().map_or(0, Answer::status);
    (status, client.rest(BOUND).await.expect("the connection is closed"))
}

#[tokio::test]
async fn http_01_what_follows_a_request_for_an_upgrade_is_a_request_of_its_own() {
    let (engine, world) = world().await;
    let smuggled = request("POST", "/v1/chat/completions", &[], br#"{"model":"nobody"}"#);
    let mut client = Client::connect(world.address).await.unwrap();
    let upgrade =
        "GET /model/m/socket HTTP/1.1\r\nHost: g\r\nUpgrade: foo\r\nConnection: upgrade\r\n\r\n";
    client.send(&[upgrade.as_bytes(), &smuggled].concat()).await.unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().status(), 200, "the engine does not upgrade");
    let second = client.answer().await.map_or(0, |answer| answer.status());
    assert!([0, 404].contains(&second), "it was answered with {second}");
    assert_eq!(engine.requests().len(), 1, "the engine saw what followed");
    assert_eq!(engine.faults(), []);
}

#[tokio::test]
async fn http_02_framing_that_is_not_certain_is_refused_and_nothing_of_it_sent_on() {
    let (engine, world) = world().await;
    let chunked = "d\r\n{\"model\":\"m\"}\r\n0\r\n\r\n";
    let coding = |line: &str| format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\n{line}\r\n\r\n{chunked}");
    let size = |size: &str| {
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n{{\"model\":\"m\"}}\r\n0\r\n\r\n"
        )
    };
    let ambiguous = [
        coding("Transfer-Encoding: chunked, identity"),
        coding("Transfer-Encoding: identity, chunked"),
        coding("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        coding("Transfer-Encoding : chunked"),
        coding("Transfer-Encoding: xchunked"),
        coding("Transfer-Encoding: chunked\r\nContent-Length: 13"),
        coding("Content-Length: 13\r\nContent-Length: 14"),
        coding("Content-Length: +13"),
        coding("X: a\r\n b\r\nTransfer-Encoding: chunked"),
        coding("Transfer-Encoding: chunked").replace("HTTP/1.1", "HTTP/1.0"),
        size("0xd"),
        size("+d"),
        size("0000000000000000d"),
        size("g"),
    ];
    for text in ambiguous {
        let (status, after) = sent(&world, text.as_bytes()).await;
        assert!([400, 0].contains(&status), "{status} for {text:?}");
        assert_eq!(after, b"", "the connection goes on after {text:?}");
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.requests().len(), 0);
    assert_eq!(engine.faults(), []);
}

#[tokio::test]
async fn http_16_head_is_get_without_a_body_and_what_opens_tunnels_is_refused() {
    let (engine, world) = world().await;
    let mut client = Client::connect(world.address).await.unwrap();
    for path in ["/health", "/healthz", "/readyz", "/v1/models", "/v1/models/m", "/model/m/health"]
    {
        client.send(&request("GET", path, &[], b"")).await.unwrap();
        let get = client.answer_to("GET").await.unwrap();
        client.send(b"HEAD ").await.unwrap();
        client.send(format!("{path} HTTP/1.1\r\nHost: g\r\n\r\n").as_bytes()).await.unwrap();
        let head = client.answer_to("HEAD").await.unwrap();
        assert_eq!((head.status(), head.body.len()), (get.status(), 0), "{path}");
        let length = |answer: &Answer| answer.head.header("content-length").map(str::to_owned);
        assert_eq!(length(&head), length(&get), "{path}");
    }
    let seen = engine.requests().len();
    for line in ["OPTIONS *", "TRACE /", "TRACE /model/m/x", "CONNECT x:1", "BREW /v1/models"] {
        let bytes = format!("{line} HTTP/1.1\r\nHost: g\r\n\r\n");
        let (status, _) = sent(&world, bytes.as_bytes()).await;
        assert!((400..500).contains(&status), "{line}: {status}");
    }
    assert_eq!(engine.requests().len(), seen, "an engine saw what should have been refused");
}

#[tokio::test]
async fn http_20_every_refusal_is_json_in_openais_shape_with_an_id() {
    let engine = Origin::answering("{}").await.unwrap();
    let tight = Limits { max_body: 1000, body_pause: Duration::from_millis(200), ..limits() };
    let world =
        World::with(engine.address, vec![model("m", None), model("full", None)], tight, 2000);
    world.desk.forget_engine("full");
    let length = |length: u32| {
        format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nContent-Length: {length}\r\n\r\n")
    };
    let refused = [
        (request("POST", CHAT, &[], b"{"), 400),
        (b"GARBAGE\r\n\r\n".to_vec(), 400),
        (b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n".to_vec(), 400),
        (request("POST", CHAT, &[], br#"{"model":"nobody"}"#), 404),
        (request("POST", "/v1/nowhere", &[], b""), 404),
        (request("DELETE", CHAT, &[], b""), 405),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n".to_vec(), 405),
        (length(500).into_bytes(), 408),
        (length(5000).into_bytes(), 413),
        (request("POST", CHAT, &[("Content-Encoding", "gzip")], ASK), 415),
        (request("POST", CHAT, &[("Expect", "a-miracle")], ASK), 417),
        (request("POST", CHAT, &[], br#"{"model":"full","stream":true}"#), 503),
    ];
    for (bytes, status) in refused {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&bytes).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), status, "{shown}");
        assert_eq!(answer.head.header("content-type"), Some("application/json"), "{shown}");
        let error = &answer.json()["error"];
        for field in ["message", "type", "code"] {
            assert!(error[field].is_string(), "{shown}: no {field} in {error}");
        }
        assert!(answer.head.header("x-request-id").is_some(), "{shown}: no id");
    }
}

#[tokio::test]
async fn a_compressed_request_is_refused_where_it_has_to_be_read() {
    let (engine, world) = world().await;
    let gzip = [("Content-Encoding", "gzip")];
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", CHAT, &gzip, b"\x1f\x8b\x08")).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status(), answer.head.header("accept-encoding")), (415, Some("identity")));
    assert_eq!(answer.json()["error"]["code"], "compressed_body");
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", CHAT, &[("Content-Encoding", "identity")], ASK)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    client.send(&request("POST", "/model/m/upload", &gzip, b"\x1f\x8b\x08")).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let passed = engine.requests().pop().unwrap();
    assert_eq!(passed.body, b"\x1f\x8b\x08");
    assert_eq!(passed.head.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn sec_03_a_name_is_only_looked_up_whatever_it_looks_like() {
    let (engine, world) = world().await;
    let long = "x".repeat(10_000);
    let hostile = [
        "../../etc/passwd",
        "x/../../api/delete",
        "@evil.example:80",
        "http://169.254.169.254/",
        "%2e%2e%2f",
        "a?x=1#",
        r"..\..",
        &long,
    ];
    let before = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    for name in hostile {
        let quoted = serde_json::to_string(name).unwrap();
        let body = format!(r#"{{"model":{quoted}}}"#);
        let form = format!(
            "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{name}\r\n--b--\r\n"
        );
        let form_type = [("Content-Type", "multipart/form-data; boundary=b")];
        let requests = [
            request("POST", CHAT, &[], body.as_bytes()),
            request("POST", CHAT, &[("X-Model-ID", name)], b"{}"),
            request("POST", "/v1/audio/transcriptions", &form_type, form.as_bytes()),
            request("POST", &format!("/model/{name}/v1/chat/completions"), &[], b"{}"),
            request("GET", &format!("/v1/models/{name}"), &[], b""),
        ];
        for bytes in requests {
            let mut client = Client::connect(world.address).await.unwrap();
            client.send(&bytes).await.unwrap();
            let answer = client.answer().await.unwrap();
            assert!([400, 404, 405].contains(&answer.status()), "{name}: {}", answer.status());
            let message = answer.json()["error"]["message"].as_str().map_or(0, str::len);
            assert!((1..500).contains(&message), "{name}: a message of {message} bytes");
        }
    }
    for body in [r#"{"model":"a\r\nHost: x"}"#, r#"{"model":"a\u0000b"}"#] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, body.as_bytes()).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), 404, "{body}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.connections(), 0);
    let after = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    let series = |page: &str| page.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(series(&after), series(&before), "a name became a label");
}

/// A request whose body comes in one chunk for each byte, each with `extension` behind its size.
fn extended(extension: &str) -> Vec<u8> {
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut bytes = head.into_bytes();
    for byte in ASK {
        bytes.extend_from_slice(format!("1{extension}\r\n").as_bytes());
        bytes.extend_from_slice(&[*byte, b'\r', b'\n']);
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[tokio::test]
async fn http_02_extensions_of_chunks_end_here_and_what_only_looks_like_one_is_refused() {
    let (engine, world) = world().await;
    for extension in [";a", ";a=b", ";a=\"b\";c"] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&extended(extension)).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), 200, "{extension:?}: {}", answer.text());
        assert_eq!(engine.requests().pop().unwrap().body, ASK, "{extension:?}");
    }
    let passed = engine.requests().len();
    let flood = format!(";{}", "x".repeat(1 << 20));
    for extension in ["\n", ";a\rb", &flood] {
        let (status, after) = sent(&world, &extended(extension)).await;
        let shown = &extension[..extension.len().min(20)];
        assert!([400, 0].contains(&status), "{status} for {shown:?}");
        assert_eq!(after, b"", "the connection goes on after {shown:?}");
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!((engine.requests().len(), engine.faults()), (passed, vec![]));
}

#[tokio::test]
async fn trailers_without_an_end_are_cut_off() {
    let (engine, world) = world().await;
    let mut client = Client::connect(world.address).await.unwrap();
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n");
    let body = "d\r\n{\"model\":\"m\"}\r\n0\r\n";
    client.send([head.as_str(), body].concat().as_bytes()).await.unwrap();
    let line = format!("X-Filler: {}\r\n", "a".repeat(8000)).repeat(8);
    let mut sent = 0;
    while sent < 1000 && client.send(line.as_bytes()).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 1000, "64 MB of trailers were taken");
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn http_01_what_stands_behind_a_handshake_is_its_body_or_nothing() {
    let (engine, world) = world().await;
    let smuggled = "POST /model/m/smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    for framing in [
        format!("Content-Length: {}\r\n\r\n{smuggled}", smuggled.len()),
        format!(
            "Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{smuggled}\r\n0\r\n\r\n",
            smuggled.len()
        ),
    ] {
        let handshake = format!(
            "GET /model/m/socket HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\nConnection: upgrade\r\n{framing}"
        );
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(handshake.as_bytes()).await.unwrap();
        // Refused, or answered by an engine that does not upgrade.
        let status = client.answer_to("GET").await.map_or(0, |answer| answer.status());
        assert!([0, 200, 400].contains(&status), "{status}");
        let _ = client.finish_sending().await;
        let after = client.rest(BOUND).await.expect("the connection is closed");
        assert_eq!(after, b"", "the body was answered as a request");
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.faults(), []);
    assert!(engine.requests().iter().all(|seen| seen.head.target() == "/socket"));
}

#[tokio::test]
async fn an_engine_is_told_its_own_host_and_once_whatever_hosts_a_client_names() {
    let (engine, world) = world().await;
    for (line, hosts) in [
        ("/v1/chat/completions", "Host: a\r\nHost: b\r\n"),
        ("/v1/chat/completions", "Host: user@evil\r\n"),
        ("/v1/chat/completions", "Host: a b\r\n"),
        ("/v1/chat/completions", "Host:\r\n"),
        ("/v1/chat/completions", ""),
        ("http://evil/v1/chat/completions", "Host: g\r\n"),
        ("http://user:word@evil:1/v1/chat/completions", "Host: g\r\n"),
    ] {
        let head = format!("POST {line} HTTP/1.1\r\n{hosts}Content-Length: {}\r\n\r\n", ASK.len());
        let (status, _) = sent(&world, &[head.as_bytes(), ASK].concat()).await;
        assert!([0, 200, 400, 404].contains(&status), "{status} for {line} and {hosts:?}");
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.faults(), []);
    for seen in engine.requests() {
        let (host, count) = (seen.head.header("host"), seen.head.count("host"));
        assert_eq!((host, count), (Some(engine.address.to_string().as_str()), 1));
        assert_eq!(seen.head.target(), CHAT);
    }
}
