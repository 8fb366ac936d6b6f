//! A model whose engines are there is served by them.

use std::time::Duration;

use flexinfer_testkit::simulator::{Settings, Timings};
use serde_json::json;

use super::world::{BOUND, Site, get};
use crate::crds::model;
use crate::shared::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn route_12_a_listed_engine_is_used_once_it_answers_by_itself() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    gateway.knows("a").await;
    let timings = Timings { load: Duration::from_secs(1), ..Timings::default() };
    let engine = site.engine(Settings { timings, ..Settings::default() }).await;
    site.list("a", &engine).await;
    let answer = gateway.ask("a").await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(engine.is_ready());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_take_turns_over_the_engines_of_a_model() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    let engines = [site.engine(Settings::default()).await, site.engine(Settings::default()).await];
    for engine in &engines {
        site.list("a", engine).await;
    }
    let open = |shown: &serde_json::Value| {
        let endpoints = shown["endpoints"].as_array().cloned().unwrap_or_default();
        endpoints.iter().filter(|endpoint| endpoint["state"] == "Open").count() == 2
    };
    gateway.sees("a", open).await;
    for _ in 0..10 {
        assert_eq!(gateway.ask("a").await.status(), 200);
    }
    let asked = |engine: &flexinfer_testkit::simulator::Running| {
        engine.requests().iter().filter(|request| request.path.contains("chat")).count()
    };
    assert_eq!([asked(&engines[0]), asked(&engines[1])], [5, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_and_the_list_of_models_say_what_the_cluster_says() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    assert_eq!(get(gateway.admin, "/readyz").await.status(), 200);
    let listed = async || get(gateway.address, "/v1/models").await.json()["data"][0].clone();
    assert_eq!(listed().await["metadata"]["ready"], false);
    site.say("a", &json!({ "phase": "Loading" })).await;
    eventually("the phase is listed", async || {
        (listed().await["metadata"]["phase"] == "Loading").then_some(())
    })
    .await;
    let engine = site.engine(Settings::default()).await;
    site.list("a", &engine).await;
    site.say("a", &json!({ "phase": "Ready" })).await;
    eventually("it is listed ready", async || {
        let metadata = listed().await["metadata"].clone();
        (metadata["ready"] == true && metadata["phase"] == "Ready").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_engine_is_served_from_its_own_address() {
    let site = Site::new().await;
    let engine = site.engine(Settings::default()).await;
    let spec = json!({ "backend": "external", "config": { "url": engine.url() } });
    site.models.apply(&model("a", &spec)).await;
    let gateway = site.gateway("one").await;
    let answer = gateway.ask("a").await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    engine.stop().await;
    let late = gateway.ask("a").await;
    assert_eq!(super::world::code(&late), "activation_failed", "{}", late.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_ends_in_order_and_takes_its_entry_back() {
    let site = Site::new().await;
    site.simulated("a").await;
    let mut gateway = site.gateway("one").await;
    let engine = site.engine(Settings::default()).await;
    site.list("a", &engine).await;
    assert_eq!(gateway.ask("a").await.status(), 200);
    site.traffic("a", |entry| entry["gateway"] == "one").await;
    gateway.program.terminate();
    let status = gateway.program.exited(BOUND).await.unwrap();
    assert!(status.success());
    let status = site.status("a").await;
    assert!(status["traffic"].as_array().is_none_or(Vec::is_empty), "{status}");
    assert!(status["lastActiveTime"].is_string(), "{status}");
}
