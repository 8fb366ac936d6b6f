//! A model that is woken again and again: each time whoever waits is answered, and as soon as the engine can, from
//! its own word to the first byte.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use flexinfer_crds::model::Phase;
use serde_json::json;

use super::world::{Gateway, start};
use crate::controller::{Desk, simulated};
use crate::shared::eventually;

const ROUNDS: usize = 20;
const LOAD: Duration = Duration::from_secs(1);

/// When the engine that came up last said that it is ready: it says nothing afterwards.
fn ready_at(desk: &Desk) -> SystemTime {
    let logs = std::fs::read_dir(desk.kubelet.logs()).unwrap();
    let ready = logs.filter_map(|entry| {
        let path = entry.unwrap().path();
        let said = std::fs::read_to_string(&path).ok()?;
        let last = said.lines().last()?;
        last.contains(" is ready on ").then(|| path.metadata().unwrap().modified().unwrap())
    });
    ready.max().unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// How long a request to an engine that is up takes.
async fn warm(gateway: &Gateway) -> Duration {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let asked = Instant::now();
        assert_eq!(gateway.ask("m").await.status(), 200);
        times.push(asked.elapsed());
    }
    median(times)
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_20_each_of_twenty_activations_is_answered_as_soon_as_its_engine_is_ready() {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    let mut spec = simulated(&json!({ "serverless": { "idleTimeout": "1s" } }));
    let load = format!("--load-time={}ms", LOAD.as_millis());
    spec["config"]["args"] = json!([load, "--time-to-first-token=0ms", "--time-per-token=0ms"]);
    desk.apply("m", &spec).await;
    gateway.knows("m").await;
    let (mut waits, mut addresses) = (Vec::new(), BTreeSet::new());
    for round in 0..ROUNDS {
        desk.until_phase("m", Phase::Idle).await;
        eventually("the pod is gone", async || desk.pods("m").await.is_empty().then_some(())).await;
        let answer = gateway.ask("m").await;
        let answered = SystemTime::now();
        assert_eq!(answer.status(), 200, "round {round}: {}\n{}", answer.text(), desk.log());
        waits.push(answered.duration_since(ready_at(&desk)).unwrap_or_default());
        let pods = desk.pods("m").await.into_iter();
        addresses.extend(pods.filter_map(|pod| pod.status?.pod_ip));
    }
    let direct = warm(&gateway).await;
    assert!(addresses.len() > 1, "an engine always had the address of the one before");
    gateway
        .sees("m", |shown| (&shown["waiting"], &shown["inFlight"]) == (&json!(0), &json!(0)))
        .await;
    println!(
        "from ready to the first byte: {waits:?}; a request to an engine that is up: {direct:?}"
    );
    let wait = median(waits);
    // A prober that asks a tenth as often as it may would be late by this much.
    let bound = LOAD / 10 + direct * 10;
    assert!(wait < bound, "{wait:?} after the engine was ready; {direct:?} when it is up");
}
