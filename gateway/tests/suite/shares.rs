//! Bodies that one caller holds back leave room for those of others.

use flexinfer_core::fleet::Fleet;
use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::origin::Origin;
use flexinfer_testkit::{eventually, eventually_async};

use crate::callers::{ask, with_keys};
use crate::world::{BOUND, Terms, World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const MIB: usize = 1 << 20;

fn body(size: usize) -> Vec<u8> {
    format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(size)).into_bytes()
}

#[tokio::test]
async fn a_caller_whose_bodies_pause_leaves_room_for_others() {
    let engine = Origin::answering("{}").await.unwrap();
    let limits = Limits { max_body: 4 * MIB as u64, ..limits() };
    let terms = Terms { limits, budget: 12 * MIB as u64, rules: with_keys(), ..Terms::default() };
    let world = World::serve(engine.address, Fleet::build(vec![model("m", None)]).0, terms);
    let alice = [("Authorization", "Bearer alice")];
    let paused = request("POST", CHAT, &alice, &body(3 * MIB));
    let mut pausing = Vec::new();
    for count in 1..=2 {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&paused[..2 * MIB + MIB / 2]).await.unwrap();
        pausing.push(client);
        let held = || world.budget.held() >= (count * 2 * MIB) as u64;
        assert!(eventually(BOUND, held).await, "{} held", world.budget.held());
    }
    let refused = ask(&world, "POST", CHAT, &alice, &body(3 * MIB)).await;
    assert_eq!(refused.json()["error"]["code"], "buffer_full", "she holds as much as is left");
    let bob = [("Authorization", "Bearer bob")];
    assert_eq!(ask(&world, "POST", CHAT, &bob, &body(2 * MIB)).await.status(), 200);
    assert_eq!(
        ask(&world, "POST", CHAT, &alice, &body(1000)).await.status(),
        200,
        "short ones pass"
    );
    drop(pausing);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(ask(&world, "POST", CHAT, &alice, &body(3 * MIB)).await.status(), 200);
}

#[tokio::test]
async fn a_caller_with_many_short_bodies_that_pause_leaves_room_for_others() {
    let engine = Origin::answering("{}").await.unwrap();
    let limits = Limits { max_body: MIB as u64, ..limits() };
    let terms = Terms { limits, budget: 2 * MIB as u64, rules: with_keys(), ..Terms::default() };
    let world = World::serve(engine.address, Fleet::build(vec![model("m", None)]).0, terms);
    let alice = [("Authorization", "Bearer alice")];
    let paused = request("POST", CHAT, &alice, &body(60 * 1024));
    let mut pausing = Vec::new();
    // More than there is room for, by a half.
    for _ in 0..60 {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&paused[..50 * 1024]).await.unwrap();
        pausing.push(client);
    }
    let full = async || ask(&world, "POST", CHAT, &alice, &body(60 * 1024)).await.status() == 503;
    assert!(
        eventually_async(BOUND, full).await,
        "she holds as much as is left: {}",
        world.budget.held()
    );
    let bob = [("Authorization", "Bearer bob")];
    for size in [1000, 60 * 1024, MIB / 4] {
        let answer = ask(&world, "POST", CHAT, &bob, &body(size)).await;
        assert_eq!(answer.status(), 200, "{size}: {}", answer.text());
    }
    drop(pausing);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(ask(&world, "POST", CHAT, &alice, &body(60 * 1024)).await.status(), 200);
}
