//! Models that share one GPU.

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::{Phase, SharedGroupState};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use serde_json::{Value, json};

use super::{Desk, simulated};
use crate::machine::phase;
use crate::shared::eventually;

fn sharing(priority: i32) -> Value {
    let gpu =
        json!({ "vendor": "nvidia", "shared": "gpu0", "priority": priority, "swapCooldown": "2s" });
    simulated(&json!({ "gpu": gpu }))
}

fn state(status: &ModelStatus) -> Option<SharedGroupState> {
    status.shared_group.as_ref()?.state
}

/// How many pods of a model may hold its GPU: all but those whose containers are gone for good.
async fn running(desk: &Desk, model: &str) -> usize {
    let over = |pod: &Pod| matches!(phase(pod), "Succeeded" | "Failed");
    desk.pods(model).await.iter().filter(|pod| !over(pod)).count()
}

/// Both up at once is what must never be: watched from the moment of the call.
async fn never_both(desk: &Desk, until: impl AsyncFn() -> bool) {
    let begun = tokio::time::Instant::now();
    while !until().await {
        // The newcomer first: what is there of the old one afterwards was there beside it.
        let (high, low) = (running(desk, "high").await, running(desk, "low").await);
        assert!(low == 0 || high == 0, "both have pods\n{}", desk.log());
        let patience = std::time::Duration::from_secs(100);
        assert!(begun.elapsed() < patience, "it did not come\n{}", desk.log());
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
}

async fn is_ready(desk: &Desk, model: &str) -> bool {
    let status = desk.api().get(model).await.unwrap().status.unwrap_or_default();
    status.phase == Some(Phase::Ready)
}

#[tokio::test]
async fn a_higher_demand_takes_the_gpu_when_the_old_pods_are_gone() {
    let desk = Desk::new().await;
    desk.apply("low", &sharing(100)).await;
    desk.apply("high", &sharing(200)).await;
    desk.traffic("low", 0, 1).await;
    desk.until_phase("low", Phase::Ready).await;
    desk.traffic("low", 2, 0).await;

    desk.traffic("high", 0, 1).await;
    let draining = |status: &ModelStatus| state(status) == Some(SharedGroupState::Draining);
    let status = desk.until("draining", "low", draining).await;
    assert_eq!(status.shared_group.unwrap().preempted_by.as_deref(), Some("high"));
    assert_eq!(status.phase, Some(Phase::Ready), "it finishes what it has");
    let waits = |status: &ModelStatus| state(status) == Some(SharedGroupState::Queued);
    let status = desk.until("queued", "high", waits).await;
    assert_eq!(status.message.as_deref(), Some("waiting: low is leaving the GPU"));

    desk.traffic("low", 0, 0).await;
    never_both(&desk, async || is_ready(&desk, "high").await).await;
    let status = desk.until_phase("low", Phase::Preempted).await;
    assert_eq!(state(&status), Some(SharedGroupState::Preempted));
    assert!(desk.events("low").await.contains(&"Draining".to_owned()));
    let told = desk.told("high").await;
    let phases = ["draining the other took", "stopping it", "loading took"];
    let whole = |note: &String| phases.iter().all(|phase| note.contains(phase));
    assert!(told.iter().any(whole), "{told:?}");
}

#[tokio::test]
async fn each_swap_tells_its_own_times() {
    let desk = Desk::new().await;
    desk.apply("one", &sharing(100)).await;
    desk.apply("other", &sharing(100)).await;
    desk.traffic("one", 0, 1).await;
    desk.until_phase("one", Phase::Ready).await;
    for swaps in 1..=2 {
        for (leaving, coming) in [("one", "other"), ("other", "one")] {
            desk.traffic(leaving, 0, 0).await;
            desk.traffic(coming, 0, 1).await;
            desk.until_phase(coming, Phase::Ready).await;
            eventually("the swap is told with its times", async || {
                let told = desk.told(coming).await;
                let timed = told.iter().filter(|note| note.contains("draining the other took"));
                (timed.count() == swaps).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_drain_ends_at_its_limit_although_requests_are_in_flight() {
    let desk = Desk::new().await;
    let mut low = sharing(100);
    low["gpu"]["drainTimeout"] = json!("2s");
    desk.apply("low", &low).await;
    desk.apply("high", &sharing(200)).await;
    desk.traffic("low", 0, 1).await;
    desk.until_phase("low", Phase::Ready).await;
    desk.traffic("low", 5, 0).await;
    desk.traffic("high", 0, 1).await;
    desk.until_phase("high", Phase::Ready).await;
}

#[tokio::test]
async fn one_decision_at_each_kill_point_of_a_swap() {
    // Killed: while it drains, once the old one was told to go, and while the new one loads.
    for point in ["draining", "leaving", "loading"] {
        let mut desk = Desk::new().await;
        desk.apply("low", &sharing(100)).await;
        desk.apply("high", &sharing(200)).await;
        desk.traffic("low", 0, 1).await;
        desk.until_phase("low", Phase::Ready).await;
        desk.traffic("low", 1, 0).await;
        desk.traffic("high", 0, 1).await;
        let draining = |status: &ModelStatus| state(status) == Some(SharedGroupState::Draining);
        desk.until("draining", "low", draining).await;
        if point != "draining" {
            desk.traffic("low", 0, 0).await;
            eventually("the point of the kill", async || {
                let reached = match point {
                    "leaving" => desk.replicas("low").await == Some(0),
                    _ => desk.replicas("high").await == Some(1),
                };
                reached.then_some(())
            })
            .await;
        }
        desk.kill_controller().await;
        desk.traffic("low", 0, 0).await;
        desk.traffic("high", 0, 1).await;
        desk.start_controller(&[]);
        never_both(&desk, async || is_ready(&desk, "high").await).await;
        assert_eq!(desk.replicas("low").await, Some(0), "killed while {point}");
    }
}

#[tokio::test]
async fn a_training_job_that_leases_the_gpu_keeps_models_off_it() {
    let desk = Desk::new().await;
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    let until = Timestamp::now() + std::time::Duration::from_secs(3600);
    let metadata = ObjectMeta {
        name: Some("gpu-lease-gpu0".into()),
        labels: Some([("ai.flexinfer/gpu-lease".to_owned(), "true".to_owned())].into()),
        ..ObjectMeta::default()
    };
    let data = [("group", "gpu0".to_owned()), ("expiresAt", until.to_string())];
    let data = data.map(|(key, value)| (key.to_owned(), value)).into();
    let lease =
        k8s_openapi::api::core::v1::ConfigMap { metadata, data: Some(data), ..Default::default() };
    maps.create(&PostParams::default(), &lease).await.unwrap();
    desk.apply("low", &sharing(100)).await;
    desk.until_phase("low", Phase::Idle).await;
    desk.traffic("low", 0, 1).await;
    let told = |status: &ModelStatus| {
        status.message.as_deref().is_some_and(|message| message.contains("leased until"))
    };
    desk.until("told of the lease", "low", told).await;
    assert_eq!(desk.replicas("low").await, Some(0));
    maps.delete("gpu-lease-gpu0", &DeleteParams::default()).await.unwrap();
    desk.traffic("low", 0, 1).await;
    desk.until_phase("low", Phase::Ready).await;
}

#[tokio::test]
async fn a_model_that_cannot_start_makes_room_for_one_that_can() {
    let desk = Desk::new().await;
    let mut broken = sharing(200);
    broken["image"] = json!("not/there:1");
    desk.apply("high", &broken).await;
    desk.apply("low", &sharing(100)).await;
    desk.traffic("high", 0, 1).await;
    desk.until_phase("high", Phase::Failed).await;
    desk.traffic("low", 0, 1).await;
    desk.until_phase("low", Phase::Ready).await;
    let status = desk.api().get("high").await.unwrap().status.unwrap();
    assert_eq!(status.phase, Some(Phase::Failed), "and it still says why");
}
