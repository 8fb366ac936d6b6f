//! A request for a model that sleeps becomes demand that the controller reads.

use flexinfer_testkit::simulator::Settings;
use serde_json::{Value, json};

use super::world::{Site, code};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_wakes_a_model_and_is_answered_when_it_is_there() {
    let site = Site::new().await;
    site.simulated("a").await;
    // It knows nothing of the model but what the API server says.
    let gateway = site.gateway("brand-new").await;
    let asking = gateway.asking("a");
    let status = site.traffic("a", |entry| entry["waiting"] == 1).await;
    assert!(status["lastActiveTime"].is_string(), "{status}");
    assert_eq!(status["traffic"][0]["gateway"], "brand-new");
    let engine = site.engine(Settings::default()).await;
    site.list("a", &engine).await;
    assert_eq!(asking.await.unwrap().status(), 200);
    site.say("a", &json!({ "phase": "Ready" })).await;
    site.traffic("a", |entry| entry["inFlight"] == 0 && entry["waiting"] == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_17_a_model_without_a_queue_is_woken_all_the_same() {
    let site = Site::new().await;
    let mut unqueued = crate::crds::model("a", &json!({ "backend": "simulator" }));
    unqueued["metadata"]["annotations"] = json!({ "flexinfer.ai/max-queue": "0" });
    site.models.apply(&unqueued).await;
    let gateway = site.gateway("one").await;
    assert_eq!(code(&gateway.ask("a").await), "queue_full");
    site.traffic("a", |entry| entry["waiting"].as_i64() > Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_drains_gets_nothing_new_until_it_is_back() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    let engine = site.engine(Settings::default()).await;
    site.list("a", &engine).await;
    site.say("a", &json!({ "phase": "Ready", "sharedGroup": { "state": "Draining" } })).await;
    gateway.sees("a", |shown| shown["draining"] == true && is_open(shown)).await;
    let asking = gateway.asking("a");
    gateway.waits("a", 1).await;
    site.traffic("a", |entry| entry["waiting"] == 1).await;
    site.say("a", &json!({ "sharedGroup": { "state": "Active" } })).await;
    assert_eq!(asking.await.unwrap().status(), 200);
}

fn is_open(shown: &Value) -> bool {
    shown["endpoints"][0]["state"] == "Open"
}
