//! The API server goes away: nobody who is served notices.

use std::time::Duration;

use flexinfer_testkit::simulator::Settings;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::world::{Site, ask};
use crate::line::Line;
use crate::shared::full;

/// How many requests a second arrive meanwhile, answered or not.
const RATE: u32 = 100;

/// How long the API server is away; `cargo xtask test --full` asks for a minute.
fn absence() -> Duration {
    Duration::from_secs(if full() { 60 } else { 8 })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_model_is_served_while_the_api_server_is_away_and_demand_arrives_afterwards() {
    let site = Site::new().await;
    site.simulated("ready").await;
    site.patient("asleep").await;
    let (line, kubeconfig) = Line::to(&site.kubeconfig().await, site.folder()).await;
    let gateway = site.gateway_by("one", kubeconfig, &[]).await;
    let engine = site.engine(Settings::default()).await;
    site.list("ready", &engine).await;
    assert_eq!(gateway.ask("ready").await.status(), 200);

    line.cut();
    let asleep = gateway.asking("asleep");
    let mut asked = JoinSet::new();
    // Who was late catches up: the rate is that of the clients, not of the answers.
    let mut tick = interval(Duration::from_secs(1) / RATE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let requests = RATE * u32::try_from(absence().as_secs()).unwrap();
    for _ in 0..requests {
        tick.tick().await;
        let address = gateway.address;
        asked.spawn(async move { ask(address, "ready").await });
    }
    for answer in asked.join_all().await {
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    // What is missed meanwhile is learnt afterwards: a model that came, and an engine.
    site.simulated("new").await;
    let second = site.engine(Settings::default()).await;
    site.list("asleep", &second).await;

    line.mend();
    assert_eq!(asleep.await.unwrap().status(), 200);
    gateway.knows("new").await;
    site.traffic("asleep", |entry| entry["peak"].as_i64() > Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_an_api_server_is_not_ready_and_serves_once_it_is_there() {
    let site = Site::new().await;
    site.simulated("a").await;
    let (line, kubeconfig) = Line::to(&site.kubeconfig().await, site.folder()).await;
    line.cut();
    let mending = tokio::spawn(async move {
        sleep(Duration::from_secs(1)).await;
        line.mend();
        line
    });
    let gateway = site.gateway_by("one", kubeconfig, &[]).await;
    gateway.knows("a").await;
    drop(mending.await.unwrap());
}
