//! A refusal that comes before a body was read leaves none of it to be taken for the next request.

use std::time::Duration;

use flexinfer_core::limits::{Policy, Rate};
use flexinfer_gateway::accounts::Accounts;
use flexinfer_gateway::parts::Limits;
use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::origin::Origin;

use crate::callers::{ask, with_keys};
use crate::world::{World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const HIDDEN: &[u8] = b"GET /model/m/admin HTTP/1.1\r\nHost: x\r\n\r\n";

/// Sends a request with a hidden one in its body and a list of models behind it; tells how it was refused.
async fn refused(world: &World, path: &str, headers: &[(&str, &str)], key: &[(&str, &str)]) -> u16 {
    let mut client = Client::connect(world.address).await.unwrap();
    let first = request("POST", path, headers, HIDDEN);
    client.send(&[first, request("GET", "/v1/models", key, b"")].concat()).await.unwrap();
    let status = client.answer().await.unwrap().status();
    if let Ok(second) = client.answer_to("GET").await {
        assert_eq!(second.json()["object"], "list", "{path}: the body was read as a request");
    }
    status
}

#[tokio::test]
async fn http_04_a_body_that_nobody_read_is_no_request() {
    let engine = Origin::answering("{}").await.unwrap();
    let tight = Limits { max_body: HIDDEN.len() as u64 - 1, ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], limits(), 1 << 30);
    let narrow = World::with(engine.address, vec![model("m", None)], tight, 1 << 30);
    for (world, path, headers, status) in [
        (&world, "/v1/nowhere", &[][..], 404),
        (&world, CHAT, &[("X-Model-ID", "nobody")], 404),
        (&world, CHAT, &[("Content-Encoding", "gzip")], 415),
        (&world, CHAT, &[("Content-Type", "audio/wav")], 415),
        (&narrow, CHAT, &[], 413),
    ] {
        assert_eq!(refused(world, path, headers, &[]).await, status, "{path} {headers:?}");
    }
    assert_eq!(engine.connections(), 0);
}

#[tokio::test]
async fn http_04_a_wrong_key_makes_no_request_of_the_body() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::ruled(engine.address, vec![model("m", None)], with_keys());
    let right = [("Authorization", "Bearer alice")];
    for wrong in [&[][..], &[("Authorization", "Bearer mallory")]] {
        assert_eq!(refused(&world, CHAT, wrong, &right).await, 401);
    }
    assert_eq!(engine.connections(), 0);
}

#[tokio::test]
async fn http_04_a_request_over_its_limit_makes_none_of_its_body() {
    let engine = Origin::answering("{}").await.unwrap();
    let hourly = Rate { units: 1, period: Duration::from_secs(3600), burst: 1 };
    let policy = Policy { per_model: Some(hourly), global: None };
    let rules = Rules { accounts: Some(Accounts::new(policy)), ..Rules::default() };
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    assert_eq!(ask(&world, "POST", CHAT, &[], br#"{"model":"m"}"#).await.status(), 200);
    let seen = engine.requests().len();
    assert_eq!(refused(&world, CHAT, &[("X-Model-ID", "m")], &[]).await, 429);
    assert_eq!(engine.requests().len(), seen);
}
