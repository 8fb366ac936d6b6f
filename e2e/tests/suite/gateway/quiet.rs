//! Models that go to sleep when nobody asks: not while anybody is served, and who comes just then is served too.

use std::net::SocketAddr;
use std::time::Duration;

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::{Phase, SharedGroupState};
use flexinfer_testkit::client::{Answer, Client};
use flexinfer_testkit::websocket::Socket;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::world::{Gateway, start};
use crate::controller::{Desk, simulated};
use crate::shared::eventually;

/// How long a model is quiet before it sleeps.
const IDLE: Duration = Duration::from_secs(4);

/// A controller, a gateway, and these models with such engines, which sleep soon.
async fn with(models: &[String], engine: &[&str]) -> (Desk, Gateway) {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    let idle = format!("{}s", IDLE.as_secs());
    let serverless = json!({ "idleTimeout": idle, "coldStartTimeout": "4m" });
    let mut spec = simulated(&json!({ "serverless": serverless }));
    spec["config"]["args"] = json!(engine);
    for name in models {
        desk.apply(name, &spec).await;
        gateway.knows(name).await;
    }
    (desk, gateway)
}

/// An answer that comes as a stream.
async fn streamed(gateway: SocketAddr, model: &str) -> Answer {
    let message = json!({ "role": "user", "content": "Hello" });
    let body = json!({ "model": model, "stream": true, "messages": [message] });
    let mut client = Client::connect(gateway).await.unwrap();
    client.post("/v1/chat/completions", body.to_string().as_bytes()).await.unwrap();
    client.answer().await.unwrap()
}

/// Watches that the model keeps its replica for as long as somebody is `open`; when that was seen last.
async fn stays_up_while(desk: &Desk, model: &str, open: impl Fn() -> bool) -> (Instant, Timestamp) {
    let mut last = None;
    loop {
        let looked = (Instant::now(), Timestamp::now());
        let replicas = desk.replicas(model).await;
        // What was seen after its end says nothing.
        if !open() {
            return last.unwrap();
        }
        assert_eq!(replicas, Some(1), "{model} was stopped\n{}", desk.log());
        last = Some(looked);
        sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a model sleeps that was in use until `last`: not before it was quiet for its time.
async fn sleeps_in_its_time(desk: &Desk, model: &str, (last, at): (Instant, Timestamp)) {
    let asleep = desk.until_phase(model, Phase::Idle).await;
    assert!(last.elapsed() >= IDLE, "{model} slept {:?} after its last byte", last.elapsed());
    // It is written to the second.
    let active = asleep.last_active_time.unwrap().0 + Duration::from_secs(1);
    assert!(active >= at, "{model} was in use at {at}, and is said to have been until {active}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_06_a_model_does_not_sleep_while_a_stream_or_a_silent_socket_is_open() {
    let models = ["stream", "socket"].map(str::to_owned);
    // Each stream takes three times as long as a model is quiet before it sleeps.
    let pace = format!("--time-per-token={}ms", 3 * IDLE.as_millis() / 48);
    let (desk, gateway) = with(&models, &[&pace]).await;
    let stream = async {
        let answer = tokio::spawn(streamed(gateway.address, "stream"));
        eventually("it is woken", async || {
            (desk.replicas("stream").await == Some(1)).then_some(())
        })
        .await;
        let last = stays_up_while(&desk, "stream", || !answer.is_finished()).await;
        let answer = answer.await.unwrap();
        let whole = answer.complete && answer.text().contains("[DONE]");
        assert!(answer.status() == 200 && whole, "{}\n{}", answer.text(), desk.log());
        sleeps_in_its_time(&desk, "stream", last).await;
    };
    let silence = async {
        let path = "/v1/realtime?model=socket";
        let mut socket = Socket::open(gateway.address, path, &[]).await.unwrap();
        socket.hear_until("session.created").await;
        let opened = Instant::now();
        let last = stays_up_while(&desk, "socket", || opened.elapsed() < 3 * IDLE).await;
        // The engine is still there to say something, and the last thing that it says is its last use.
        socket.say(&json!({ "type": "response.create" })).await;
        socket.hear_until("response.done").await;
        socket.close().await;
        sleeps_in_its_time(&desk, "socket", last).await;
    };
    tokio::join!(stream, silence);
}

/// When somebody asks a model that is about to sleep.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after the last who asked was seen to be gone.
    After(Duration),
    /// Once gateways are told that it leaves.
    Draining,
    /// Once its Deployment shall have no pods.
    Zero,
    /// Once its pod ends, which it takes its time for.
    Terminating,
}

impl Moment {
    /// Waits for it.
    async fn comes(self, desk: &Desk, model: &str) {
        match self {
            Self::After(quiet) => {
                let gone = |status: &ModelStatus| {
                    let mut entries = status.traffic.iter();
                    entries.any(|entry| (entry.in_flight, entry.waiting) == (0, 0))
                };
                desk.until("without requests", model, gone).await;
                sleep(quiet).await;
            }
            Self::Draining => {
                let leaves = |status: &ModelStatus| {
                    let group = status.shared_group.as_ref();
                    let draining = group.and_then(|group| group.state);
                    draining == Some(SharedGroupState::Draining)
                        || status.phase == Some(Phase::Idle)
                };
                desk.until("told that it leaves", model, leaves).await;
            }
            Self::Zero => {
                eventually("no replicas are wished for", async || {
                    (desk.replicas(model).await == Some(0)).then_some(())
                })
                .await;
            }
            Self::Terminating => {
                eventually("its pod ends", async || {
                    let ends = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
                    desk.pods(model).await.iter().all(ends).then_some(())
                })
                .await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_09_whoever_asks_just_when_a_model_falls_asleep_is_served() {
    let around = [2, 1, 0].map(|early| IDLE.saturating_sub(Duration::from_secs(early)));
    let around = around.into_iter().chain([IDLE + Duration::from_secs(1)]).map(Moment::After);
    let moments = around.chain([Moment::Draining, Moment::Zero, Moment::Terminating]);
    let moments: Vec<Moment> = moments.collect();
    let names: Vec<String> = (0..moments.len()).map(|number| format!("m{number}")).collect();
    let (desk, gateway) = with(&names, &["--time-per-token=1ms"]).await;
    let asked = names.iter().zip(&moments).map(async |(name, moment)| {
        assert_eq!(gateway.ask(name).await.status(), 200, "{name} did not wake\n{}", desk.log());
        moment.comes(&desk, name).await;
        let answer = gateway.ask(name).await;
        assert_eq!(answer.status(), 200, "{moment:?}: {}\n{}", answer.text(), desk.log());
    });
    futures::future::join_all(asked).await;
}
