//! What a request asks of the choice of its engine, and how that is counted. The choice itself is core's.

use std::net::{Ipv4Addr, SocketAddr};

use flexinfer_core::fleet::Served;
use flexinfer_core::ids::EndpointId;
use flexinfer_core::routing::{Source, Strategy};
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin};

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";

fn routed(strategy: Strategy) -> Served {
    let mut served = model("m", None);
    served.effective.routing = Some(strategy);
    served
}

async fn ask(world: &World, headers: &[(&str, &str)], body: &str) {
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", CHAT, headers, body.as_bytes())).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_session_is_kept_together_by_its_header_or_by_how_it_begins() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![routed(Strategy::SessionAffinity)]);
    let first = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#;
    let second = r#"{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":"Why?"}]}"#;
    ask(&world, &[], first).await;
    ask(&world, &[], second).await;
    ask(&world, &[("X-Session-ID", "s")], second).await;
    let keys: Vec<_> = world.desk.wishes().into_iter().filter_map(|wish| wish.key).collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].source(), Source::SessionMessages);
    assert_eq!((keys[2].source(), keys[2].text()), (Source::SessionHeader, "s"));
}

#[tokio::test]
async fn without_affinity_nobody_looks_for_a_key() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    ask(&world, &[("X-Session-ID", "s")], r#"{"model":"m"}"#).await;
    assert_eq!(world.desk.wishes()[0].key, None);
}

#[tokio::test]
async fn who_took_no_connection_is_avoided_by_the_next_try() {
    let spare = Origin::answering("{}").await.unwrap();
    let nobody = {
        let socket = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.local_addr().unwrap()
    };
    let world = World::new(nobody, vec![model("m", None)]);
    world.desk.set_spare(spare.address);
    ask(&world, &[], r#"{"model":"m"}"#).await;
    let wishes = world.desk.wishes();
    let id = |address: SocketAddr| EndpointId(address.to_string().into());
    assert_eq!((wishes.len(), &wishes[1].avoid), (2, &vec![id(nobody)]));
}

#[tokio::test]
async fn route_05_engines_that_have_not_answered_yet_count_as_busy() {
    let mute = || Origin::start(|_| vec![Action::Hang]);
    let engines = [mute().await.unwrap(), mute().await.unwrap()];
    for strategy in [Strategy::RoundRobin, Strategy::LeastLoaded, Strategy::SessionAffinity] {
        let world = World::new(engines[0].address, vec![routed(strategy)]);
        world.desk.spread(strategy, &engines.each_ref().map(|engine| engine.address));
        let before = engines.each_ref().map(Origin::begun);
        let mut clients = Vec::new();
        for number in 0..100 {
            let mut client = Client::connect(world.address).await.unwrap();
            let session = number.to_string();
            let headers = [("X-Session-ID", session.as_str())];
            client.send(&request("POST", CHAT, &headers, br#"{"model":"m"}"#)).await.unwrap();
            clients.push(client);
        }
        let begun = || engines.each_ref().map(Origin::begun);
        let all = before.iter().sum::<usize>() + 100;
        assert!(eventually(BOUND, || begun().iter().sum::<usize>() == all).await);
        let first = begun()[0] - before[0];
        assert!((40..=60).contains(&first), "{strategy}: {first} of 100 on the first");
        drop(clients);
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

#[tokio::test]
async fn choices_are_counted_by_what_decided_and_who_was_chosen() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![routed(Strategy::Prefix)]);
    for key in ["a", "a", "b"] {
        ask(&world, &[("X-Flexinfer-Cache-Key", key)], r#"{"model":"m"}"#).await;
    }
    ask(&world, &[], r#"{"model":"m"}"#).await;
    let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    let by = r#"model="m""#;
    for (name, labels, value) in [
        (
            "routing_decisions_total",
            r#"key_source="explicit-header",model="m",outcome="pod",strategy="prefix""#,
            3,
        ),
        (
            "routing_decisions_total",
            r#"key_source="none",model="m",outcome="service-fallback",strategy="prefix""#,
            1,
        ),
        (
            "routing_key_cardinality",
            r#"key_source="explicit-header",model="m",strategy="prefix""#,
            2,
        ),
    ] {
        let line = format!("flexinfer_proxy_{name}{{{labels}}} {value}\n");
        assert!(page.contains(&line), "{line} is not in {page}");
    }
    let hits = format!(
        r#"flexinfer_proxy_routing_target_hits_total{{{by},strategy="prefix",target="{}"}} 4"#,
        engine.address
    );
    assert!(page.contains(&hits), "{hits}");
    world.metrics.know([]);
    let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    assert!(!page.contains("flexinfer_proxy_routing_decisions_total{"), "{page}");
    assert!(!page.contains("flexinfer_proxy_routing_target_hits_total{"), "{page}");
}
