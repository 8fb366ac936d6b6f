//! A key-value cache that fills up, as the agent tells it by an annotation of the node.

use flexinfer_crds::model::{Phase, PressureAction, SharedGroupState};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Desk, simulated};

async fn measured(desk: &Desk, usage: &str) {
    let nodes: Api<Node> = Api::all(desk.world().client.clone());
    let patch = json!({ "metadata": { "annotations": { "flexinfer.ai/kv-cache-usage": usage } } });
    let name = &desk.world().namespace;
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test]
async fn a_model_whose_cache_is_full_finishes_and_sleeps_where_it_wishes_so() {
    let desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({ "kvCache": { "pressurePolicy": "Evict" } }))).await;
    desk.until_phase("m", Phase::Idle).await;
    desk.traffic("m", 0, 1).await;
    desk.until_phase("m", Phase::Ready).await;
    desk.traffic("m", 1, 0).await;
    measured(&desk, "0.9500").await;
    let leaves = desk.until("told to go to sleep", "m", |status| {
        let place = status.shared_group.as_ref().and_then(|place| place.state);
        place == Some(SharedGroupState::Draining) && status.kv_cache.is_some()
    });
    let full = leaves.await.kv_cache.unwrap();
    assert_eq!(full.last_action, Some(PressureAction::EvictRequested));
    assert_eq!(full.utilization.as_deref(), Some("0.9500"));
    assert_eq!(desk.replicas("m").await, Some(1), "what it serves may finish");
    desk.traffic("m", 0, 0).await;
    desk.until("evicted", "m", |status| {
        status.kv_cache.as_ref().is_some_and(|cache| cache.evicted == Some(true))
    })
    .await;
    desk.until_phase("m", Phase::Idle).await;
    let events = desk.events("m").await;
    assert!(events.contains(&"KVCachePressure".to_owned()), "{events:?}");
    assert!(events.contains(&"KVCacheEvicted".to_owned()), "{events:?}");
    desk.traffic("m", 0, 1).await;
    desk.until_phase("m", Phase::Ready).await;
}

#[tokio::test]
async fn pressure_is_only_told_where_nothing_else_is_wished_for() {
    let desk = Desk::new().await;
    let pinned = json!({ "kvCache": {}, "serverless": { "minReplicas": 1 } });
    desk.apply("m", &simulated(&pinned)).await;
    desk.until_phase("m", Phase::Ready).await;
    measured(&desk, "0.9").await;
    let pressed = |wanted: bool| {
        move |status: &flexinfer_crds::ModelStatus| {
            status.kv_cache.as_ref().and_then(|cache| cache.pressure) == Some(wanted)
        }
    };
    desk.until("under pressure", "m", pressed(true)).await;
    measured(&desk, "0.5").await;
    desk.until("relieved", "m", pressed(false)).await;
    assert_eq!(desk.events("m").await.last().map(String::as_str), Some("KVCacheRelieved"));
    assert_eq!(desk.replicas("m").await, Some(1));
}
