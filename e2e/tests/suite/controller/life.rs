//! One model from its file to its end.

use flexinfer_crds::model::{Phase, SharedGroupState};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use super::{Desk, simulated};
use crate::shared::eventually;

#[tokio::test]
async fn a_model_is_woken_by_demand_and_sleeps_when_it_is_idle() {
    let desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({ "serverless": { "idleTimeout": "4s" } }))).await;
    let asleep = desk.until_phase("m", Phase::Idle).await;
    assert!(asleep.endpoint.unwrap().starts_with("http://m."));
    assert_eq!(desk.replicas("m").await, Some(0));
    let services: Api<Service> =
        Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    services.get("m").await.unwrap();

    desk.traffic("m", 0, 1).await;
    desk.until_phase("m", Phase::Ready).await;
    desk.traffic("m", 1, 0).await;
    let ready = desk.until_phase("m", Phase::Ready).await;
    assert!(ready.metrics.unwrap().load_time_seconds.is_some());
    assert_eq!(ready.gpu.unwrap().node.as_deref(), Some(desk.world().namespace.as_str()));
    eventually("an address in an EndpointSlice", async || {
        let slices: Api<EndpointSlice> =
            Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
        let found = slices.list(&ListParams::default()).await.unwrap().items;
        found.iter().any(|slice| slice.endpoints.iter().flatten().count() > 0).then_some(())
    })
    .await;

    desk.traffic("m", 0, 0).await;
    let leaving = |status: &flexinfer_crds::ModelStatus| {
        let place = status.shared_group.as_ref();
        place.is_some_and(|place| place.state == Some(SharedGroupState::Draining))
    };
    desk.until("told to gateways that it leaves", "m", leaving).await;
    desk.traffic("m", 0, 0).await;
    desk.until_phase("m", Phase::Idle).await;
    assert_eq!(desk.replicas("m").await, Some(0));
    assert_eq!(desk.events("m").await, ["Loading", "Ready", "Sleeping"]);
}

#[tokio::test]
async fn moving_last_active_time_wakes_a_model() {
    let desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
    let now = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(2);
    let patch = format!(r#"{{"status":{{"lastActiveTime":"{now:.0}"}}}}"#);
    let arguments = ["patch", "model", "m", "--subresource=status", "--type=merge", "--patch"];
    desk.models.succeed(&[&arguments[..], &[&patch]].concat(), "").await;
    desk.until_phase("m", Phase::Ready).await;
}

#[tokio::test]
async fn a_deleted_model_leaves_nothing() {
    let desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({ "serverless": { "minReplicas": 1 } }))).await;
    desk.until_phase("m", Phase::Ready).await;
    desk.api().delete("m", &DeleteParams::default()).await.unwrap();
    eventually("the Model is gone", async || {
        desk.api().get_opt("m").await.unwrap().is_none().then_some(())
    })
    .await;
    eventually("its Deployment and pods are gone", async || {
        let deployment = desk.deployments().get_opt("m").await.unwrap();
        (deployment.is_none() && desk.pods("m").await.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn k8s_14_a_model_that_could_never_run_can_be_deleted() {
    let desk = Desk::new().await;
    let nowhere = json!({ "backend": "vllm", "source": "HF://a/b", "gpu": { "vendor": "amd" } });
    desk.apply("m", &nowhere).await;
    desk.until("looked at", "m", |status| status.phase.is_some()).await;
    desk.api().delete("m", &DeleteParams::default()).await.unwrap();
    eventually("the Model is gone", async || {
        desk.api().get_opt("m").await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_edit_reaches_the_engine() {
    let desk = Desk::new().await;
    let pinned = json!({ "serverless": { "minReplicas": 1 } });
    desk.apply("m", &simulated(&pinned)).await;
    desk.until_phase("m", Phase::Ready).await;
    let mut edited = simulated(&pinned);
    edited["config"]["env"] = json!({ "EDITED": "yes" });
    desk.apply("m", &edited).await;
    eventually("a pod of the new spec", async || {
        let pods = desk.pods("m").await;
        let new = pods.iter().any(|pod| {
            let containers = &pod.spec.as_ref().unwrap().containers;
            containers[0].env.iter().flatten().any(|variable| variable.name == "EDITED")
        });
        new.then_some(())
    })
    .await;
    desk.until_phase("m", Phase::Ready).await;
}
