//! A page whose site's name was made to lead to this machine (DNS rebinding) is answered nothing.

use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::client::Client;
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::Origin;
use tokio::net::TcpStream;

use crate::serving_world::Serving;
use crate::world::{World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;

fn chat(host: &str) -> String {
    let body = String::from_utf8_lossy(ASK);
    let (origin, length) = (format!("http://{host}"), ASK.len());
    format!(
        "POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn http_23_only_by_its_own_names_is_a_gateway_asked_that_has_some() {
    let engine = Origin::answering("{}").await.unwrap();
    let hosts = Some("llm.example.com".parse().unwrap());
    let rules = Rules { hosts, ..Rules::default() };
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    for host in ["localhost", "127.0.0.1:8080", "[::1]:8080", "llm.example.com", "box"] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(chat(host).as_bytes()).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{host}");
    }
    let seen = engine.requests().len();
    let evil = "evil.example:8080";
    let requests = [
        chat(evil),
        chat(evil).replace(CHAT, "/model/m/api/delete"),
        format!("GET /v1/models HTTP/1.1\r\nHost: {evil}\r\n\r\n"),
        format!(
            "GET /model/m/ws HTTP/1.1\r\nHost: {evil}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        ),
    ];
    for request in requests {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(request.as_bytes()).await.unwrap();
        let refused = client.answer().await.unwrap();
        assert_eq!(refused.status(), 403, "{request}");
        let code = refused.head.header("x-flexinfer-error-code");
        assert_eq!(code, Some("host_not_allowed"));
        assert!(refused.text().contains("--allowed-hosts"), "{}", refused.text());
    }
    // A whole URL in place of the path, with another name than the host's.
    let two_names = chat("localhost").replace(CHAT, &format!("http://{evil}{CHAT}"));
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(two_names.as_bytes()).await.unwrap();
    let status = client.answer().await.unwrap().status();
    assert!([400, 403].contains(&status), "{status}");
    let stream = TcpStream::connect(world.address).await.unwrap();
    let mut client = H2Client::over(stream, evil).await.unwrap();
    assert_eq!(client.request(&Upload::post(CHAT, ASK)).await.unwrap().status, 403);
    assert_eq!(engine.requests().len(), seen);
}

#[tokio::test]
async fn http_23_local_mode_is_asked_by_its_own_names_without_being_told_to() {
    let asked = async |serving: &Serving, host: &str| {
        let mut client = Client::connect(serving.address).await.unwrap();
        let bytes = format!("GET /v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n");
        client.send(bytes.as_bytes()).await.unwrap();
        client.answer_to("GET").await.unwrap().status()
    };
    let serving = Serving::start(&[]).await;
    let own = serving.address.to_string();
    for (host, status) in [("localhost:8080", 200), (own.as_str(), 200), ("evil.example", 403)] {
        assert_eq!(asked(&serving, host).await, status, "{host}");
    }
    let told = Serving::start_with(&["--allowed-hosts", "*.example"], &[]).await;
    assert_eq!(asked(&told, "good.example").await, 200);
    let keyed = Serving::start_with(&["--allowed-hosts", "*"], &[]).await;
    assert_eq!(asked(&keyed, "evil.example").await, 200);
}
