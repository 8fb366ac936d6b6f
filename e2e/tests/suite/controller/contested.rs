//! A model whose objects another program writes too, each time that they are put back.

use std::time::Instant;

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::Phase;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Desk, simulated};
use crate::shared::eventually;

/// What the other program sets.
const THEIRS: i32 = 7;

/// Writes it where it is not there; whether it was put back, that is.
async fn meddled(desk: &Desk) -> bool {
    let there = desk.deployments().get("m").await.unwrap();
    if there.spec.progress_deadline_seconds == Some(THEIRS) {
        return false;
    }
    let manager =
        PatchParams { field_manager: Some("policy".to_owned()), ..PatchParams::default() };
    let theirs = json!({ "spec": { "progressDeadlineSeconds": THEIRS } });
    desk.deployments().patch("m", &manager, &Patch::Merge(theirs)).await.unwrap();
    true
}

#[tokio::test]
async fn what_a_program_writes_again_and_again_is_put_back_ever_less_often_and_the_model_wakes() {
    let desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
    let begun = Instant::now();
    assert!(meddled(&desk).await);
    let mut put_back = 0;
    eventually("put back three times", async || {
        put_back += u64::from(meddled(&desk).await);
        (put_back == 3).then_some(())
    })
    .await;
    // At 0, 1 and 3 seconds, and so on.
    let seconds = begun.elapsed().as_secs().max(1);
    assert!(put_back <= 2 + u64::from(seconds.ilog2()), "three times in {seconds} s");
    let goes_on = |status: &ModelStatus| {
        status.conditions.iter().any(|found| {
            found.reason == "FieldConflict" && found.message.contains("again and again")
        })
    };
    let status = desk.until("told that it goes on", "m", goes_on).await;
    let told = status.conditions.iter().find(|found| found.reason == "FieldConflict").unwrap();
    let named = "policy wrote .spec.progressDeadlineSeconds";
    assert!(told.message.contains(named), "{}", told.message);

    desk.traffic("m", 0, 1).await;
    desk.until_phase("m", Phase::Ready).await;
}
