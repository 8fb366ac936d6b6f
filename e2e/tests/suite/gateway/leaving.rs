//! Engines that leave take nothing new.

use flexinfer_testkit::simulator::{Running, Settings};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::world::Site;

fn leaving(shown: &Value) -> usize {
    let endpoints = shown["endpoints"].as_array().cloned().unwrap_or_default();
    endpoints.iter().filter(|endpoint| endpoint["state"] == "Leaving").count()
}

fn asked(engine: &Running) -> usize {
    engine.requests().iter().filter(|request| request.path.contains("chat")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_09_a_terminating_pod_gets_nothing_new() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    let (old, new) =
        (site.engine(Settings::default()).await, site.engine(Settings::default()).await);
    let listed = site.list("a", &old).await;
    site.list("a", &new).await;
    let terminating = json!({ "ready": false, "serving": true, "terminating": true });
    listed.write(&terminating, None).await;
    gateway.sees("a", |shown| leaving(shown) == 1).await;
    for _ in 0..6 {
        assert_eq!(gateway.ask("a").await.status(), 200);
    }
    assert_eq!((asked(&old), asked(&new)), (0, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_09_a_pod_that_is_gone_before_its_list_says_so_costs_no_request() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    let (old, new) =
        (site.engine(Settings::default()).await, site.engine(Settings::default()).await);
    site.list("a", &old).await;
    site.list("a", &new).await;
    for _ in 0..4 {
        assert_eq!(gateway.ask("a").await.status(), 200);
    }
    old.stop().await;
    for _ in 0..8 {
        let answer = gateway.ask("a").await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_on_a_node_that_is_taken_away_get_nothing_new() {
    let site = Site::new().await;
    site.simulated("a").await;
    let nodes: Api<Node> = Api::all(site.models.world.client.clone());
    let name = format!("node-of-{}", site.namespace());
    let node = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let gateway = site.gateway("one").await;
    let (doomed, other) =
        (site.engine(Settings::default()).await, site.engine(Settings::default()).await);
    let listed = site.list("a", &doomed).await;
    listed.write(&json!({ "ready": true }), Some(&name)).await;
    site.list("a", &other).await;
    let mark =
        json!({ "metadata": { "annotations": { "flexinfer.ai/spot-terminating": "true" } } });
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(mark)).await.unwrap();
    gateway.sees("a", |shown| leaving(shown) == 1).await;
    for _ in 0..4 {
        assert_eq!(gateway.ask("a").await.status(), 200);
    }
    assert_eq!(asked(&doomed), 0);
}
