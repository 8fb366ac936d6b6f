//! The admin port tells what the gateway is at.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use flexinfer_core::callers::Callers;
use flexinfer_core::hosts::Hosts;
use flexinfer_gateway::admin::{self, Admin, Guard, Pages};
use flexinfer_gateway::keys::Keys;
use flexinfer_gateway::lifecycle::Phase;
use flexinfer_gateway::server;
use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::Origin;

use crate::callers::callers;
use crate::world::{BOUND, World, model};

async fn get(address: SocketAddr, path: &str) -> Answer {
    let mut client = Client::connect(address).await.unwrap();
    client.send(&request("GET", path, &[], b"")).await.unwrap();
    client.answer_to("GET").await.unwrap()
}

#[tokio::test]
async fn metrics_begin_at_zero_and_count_what_happens() {
    let text = r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5}}"#;
    let engine = Origin::answering(text).await.unwrap();
    let world = World::new(engine.address, vec![model("m", None), model("idle", None)]);
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let pages = Pages {
        metrics: Arc::clone(&world.metrics),
        refresh: Arc::new(|| ()),
        lifecycle: Arc::clone(&world.lifecycle),
        settings: Arc::new(BTreeMap::from([("max-body", "64Mi".into()), ("threads", 2.into())])),
        models: Arc::new(|| serde_json::json!([{"name": "m"}])),
        guard: Guard::Open,
    };
    let admin = admin::start(listener, pages).unwrap();

    let mut client = Client::connect(world.address).await.unwrap();
    client.post("/v1/chat/completions", br#"{"model":"m"}"#).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    client.post("/v1/chat/completions", br#"{"model":"made-up"}"#).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 404);

    // A request is counted after its last byte has left.
    assert!(eventually(BOUND, || world.lifecycle.in_flight() == 0).await);
    let page = get(admin.address, "/metrics").await.text();
    for line in [
        r#"flexinfer_proxy_requests_total{model="m",status="success"} 1"#,
        r#"flexinfer_proxy_requests_total{model="m",status="error"} 0"#,
        r#"flexinfer_proxy_requests_total{model="idle",status="success"} 0"#,
        r#"flexinfer_proxy_request_duration_seconds_count{model="m"} 1"#,
        r#"flexinfer_proxy_queue_wait_duration_seconds_count{model="m"} 1"#,
        r#"flexinfer_proxy_request_prompt_tokens_sum{model="m"} 20"#,
        r#"flexinfer_proxy_completions_total{model="m",stream="false"} 1"#,
        r#"flexinfer_proxy_queue_depth{model="idle"} 0"#,
        r#"flexinfer_proxy_upstream_retries_total{model="m",reason="connect"} 0"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    assert!(!page.contains("made-up"));

    let index = get(admin.address, "/").await;
    assert_eq!(index.status(), 200);
    for link in index.text().split("href=\"").skip(1) {
        let path = link.split('"').next().unwrap();
        assert_eq!(get(admin.address, path).await.status(), 200, "the index names {path}");
    }
    let missing = get(admin.address, "/debug").await;
    assert_eq!(missing.status(), 404);
    assert!(missing.text().contains("/ lists those"), "{}", missing.text());
    let config = get(admin.address, "/debug/config").await.json();
    assert_eq!(config, serde_json::json!({"max-body": "64Mi", "threads": 2}));
    assert_eq!(get(admin.address, "/debug/models").await.json()[0]["name"], "m");
    assert_eq!(get(admin.address, "/healthz").await.status(), 200);
    assert_eq!(get(admin.address, "/readyz").await.status(), 200);
    world.lifecycle.advance(Phase::Draining);
    assert_eq!(get(admin.address, "/readyz").await.status(), 503);
    assert_eq!(get(admin.address, "/healthz").await.status(), 200);
}

/// The admin port of `world`, whose debug pages are guarded like this.
fn guarded(world: &World, guard: Guard) -> Admin {
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let pages = Pages {
        metrics: Arc::clone(&world.metrics),
        refresh: Arc::new(|| ()),
        lifecycle: Arc::clone(&world.lifecycle),
        settings: Arc::default(),
        models: Arc::new(|| serde_json::json!([])),
        guard,
    };
    admin::start(listener, pages).unwrap()
}

#[tokio::test]
async fn where_anybody_reaches_the_port_only_key_holders_see_the_debug_pages() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let shown = async |guard: Guard, headers: &[(&str, &str)]| {
        let admin = guarded(&world, guard);
        assert_eq!(get(admin.address, "/metrics").await.status(), 200);
        assert_eq!(get(admin.address, "/readyz").await.status(), 200);
        let mut client = Client::connect(admin.address).await.unwrap();
        client.send(&request("GET", "/debug/config", headers, b"")).await.unwrap();
        client.answer().await.unwrap().status()
    };
    let some = "callers: [{name: b, sha256: 81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9, models: [m]}]";
    let limited = Guard::Keyed(Some(Keys::fixed(callers(some))));
    let with_it = [("authorization", "Bearer bob")];
    assert_eq!(shown(limited, &with_it).await, 403, "it tells of models that Bob may not know of");
    let keys = || Guard::Keyed(Some(Keys::fixed(Callers::of_token("secret"))));
    assert_eq!(shown(keys(), &[]).await, 401);
    assert_eq!(shown(keys(), &[("authorization", "Bearer secret")]).await, 200);
    assert_eq!(shown(Guard::Keyed(None), &[]).await, 403);
    assert_eq!(shown(Guard::Open, &[]).await, 200);
    let own = || Guard::Local(Hosts::default());
    assert_eq!(shown(own(), &[]).await, 200);
}

const PAGES: [&str; 6] = ["/", "/metrics", "/healthz", "/readyz", "/debug/config", "/debug/models"];

#[tokio::test]
async fn http_23_a_page_that_was_led_here_sees_no_page_of_the_admin_port() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let admin = guarded(&world, Guard::Local(Hosts::default()));
    for (host, status) in [("evil.example", 403), ("localhost", 200), ("127.0.0.1:9090", 200)] {
        for page in PAGES {
            let mut client = Client::connect(admin.address).await.unwrap();
            let bytes = format!("GET {page} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            client.send(bytes.as_bytes()).await.unwrap();
            let answer = client.answer_to("GET").await.unwrap();
            assert_eq!(answer.status(), status, "{host}{page}: {}", answer.text());
        }
    }
}
