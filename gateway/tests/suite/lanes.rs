//! A gateway on threads of its own, as the program has it.

use std::time::Duration;

use flexinfer_core::fleet::Served;
use flexinfer_core::limits::Admission;
use flexinfer_gateway::rules::Rules;
use flexinfer_gateway::server::Patience;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::Origin;

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
const AT_ONCE: Patience =
    Patience { drain_delay: Duration::ZERO, in_flight: BOUND, first_request: Duration::ZERO };
/// How often a busy machine may keep a lane from serving anybody while a body is read.
const ROUNDS: usize = 10;

#[tokio::test]
async fn kept_connections_of_both_protocols_are_served_side_by_side_and_closed_at_the_end() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
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

/// A chat of 30 MiB in so many messages that it takes a moment to go through.
fn long_chat() -> Vec<u8> {
    let message = format!(r#"{{"role":"user","content":"{}"}}"#, "a word ".repeat(140));
    let messages = vec![message; (30 << 20) / 1024].join(",");
    format!(r#"{{"model":"m","messages":[{messages}]}}"#).into_bytes()
}

/// A model whose requests are measured before they are booked.
fn measured() -> Served {
    let mut served = model("m", None);
    served.effective.context_window = Some(u32::MAX);
    served.effective.context_bounded = true;
    served
}

/// A lane that goes through the body itself books it in the very turn in which its last byte is counted: no
/// other request of the lane can come first. One that has it read aside serves others meanwhile; that a
/// machine has better to do than to show it in one round is why there are several.
#[tokio::test]
async fn others_on_a_lane_are_answered_while_a_long_body_is_read_and_held_against_the_rules() {
    let engine = Origin::answering("{}").await.unwrap();
    let admission = Admission { safety_margin_percent: 0, default_max_tokens: 1 };
    let rules = Rules { validate: true, admission: Some(admission), ..Rules::default() };
    let world = World::on_one_lane(engine.address, vec![measured()], rules);
    let long = long_chat();
    let mut slow = Client::connect(world.address).await.unwrap();
    let mut other = Client::connect(world.address).await.unwrap();
    let mut overtaken = false;
    for _ in 0..ROUNDS {
        let before = world.desk.booked();
        slow.post(CHAT, &long).await.unwrap();
        let arrived = || world.budget.held() >= long.len() as u64 || world.desk.booked() > before;
        assert!(eventually(BOUND, arrived).await);
        other.send(&request("GET", "/model/m/anything", &[], b"")).await.unwrap();
        assert_eq!(other.answer_to("GET").await.unwrap().status(), 200);
        overtaken = world.desk.booked() == before + 1;
        let answer = slow.answer().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text());
        if overtaken {
            break;
        }
    }
    assert!(overtaken, "nobody was answered while the long body was gone through");
    assert!(engine.requests().iter().any(|seen| seen.body == long), "it was changed on its way");
    assert!(eventually(BOUND, || world.at_rest()).await);
}
