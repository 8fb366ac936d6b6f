//! A gateway on threads of its own, as the program has it.

use std::time::Duration;

use flexinfer_gateway::server::Patience;
use flexinfer_testkit::client::Client;
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::Origin;

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
const AT_ONCE: Patience = Patience { drain_delay: Duration::ZERO, in_flight: BOUND };

#[tokio::test]
async fn kept_connections_of_both_protocols_are_served_side_by_side_and_closed_at_the_end() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::on_lanes(engine.address, vec![model("m", None)]);
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(Client::connect(world.address).await.unwrap());
    }
    let mut h2 = H2Client::connect(world.address).await.unwrap();
    for _ in 0..3 {
        for client in &mut clients {
            client.post(CHAT, ASK).await.unwrap();
        }
        for client in &mut clients {
            assert_eq!(client.answer().await.unwrap().status(), 200);
        }
        assert_eq!(h2.request(&Upload::post(CHAT, ASK)).await.unwrap().status, 200);
    }
    assert_eq!(engine.requests().len(), 3 * 6);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert!(world.gateway.stop(AT_ONCE).await);
    for client in &mut clients {
        assert_eq!(client.rest(BOUND).await.expect("it is closed"), b"");
    }
}

#[tokio::test]
async fn a_long_body_arrives_whole_while_others_are_served() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::on_lanes(engine.address, vec![model("m", None)]);
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(3 << 20)).into_bytes();
    let mut slow = Client::connect(world.address).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(Client::connect(world.address).await.unwrap());
    }
    slow.post(CHAT, &long).await.unwrap();
    for other in &mut others {
        other.post(CHAT, ASK).await.unwrap();
        assert_eq!(other.answer().await.unwrap().status(), 200);
    }
    assert_eq!(slow.answer().await.unwrap().status(), 200);
    assert!(engine.requests().iter().any(|seen| seen.body == long), "it was changed on its way");
    assert!(eventually(BOUND, || world.at_rest()).await);
}
