//! Weights that take their time: the status says how much has come, and that nothing more comes.

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::{CacheProgress, LoadingSubstage, Phase};
use serde_json::json;

use super::hub::LARGE;
use super::weights::Shelf;
use crate::shared::eventually;

/// Bytes that the status says have come.
fn done(status: &ModelStatus) -> Option<i64> {
    let CacheProgress { done_bytes, total_bytes } = status.cache.as_ref()?.progress?;
    assert_eq!(total_bytes, i64::try_from(LARGE).unwrap());
    Some(done_bytes)
}

fn said(status: &ModelStatus) -> &str {
    let mut conditions = status.conditions.iter();
    conditions.find(|found| found.type_ == "Cached").map_or("", |found| &found.message)
}

#[tokio::test]
async fn how_much_of_a_download_has_come_is_in_the_status_and_that_nothing_more_comes() {
    let shelf = Shelf::new().await;
    shelf.apply("m", "HF://org/slow", &json!({ "cache": { "size": "1Gi" } })).await;
    let first = shelf.desk.until("on its way", "m", |status| done(status) > Some(0)).await;
    assert_eq!(first.loading_substage, Some(LoadingSubstage::Downloading));
    assert!(said(&first).ends_with("of 4.0 MiB"), "{}", said(&first));

    shelf.hub.release();
    let quarter = i64::try_from(LARGE / 4).unwrap();
    let further = |status: &ModelStatus| done(status) > Some(quarter);
    let second = shelf.desk.until("further", "m", further).await;
    let moved = |status: &ModelStatus| status.loading_progress_at.clone().map(|time| time.0);
    assert!(moved(&second) >= moved(&first));

    let stands = |status: &ModelStatus| said(status).contains("; nothing more has come since ");
    let still = shelf.desk.until("said to stand still", "m", stands).await;
    assert!(done(&still) >= done(&second) && moved(&still) >= moved(&second));
    assert_eq!(still.phase, Some(Phase::Pending));

    let status = eventually("the rest comes", async || {
        shelf.hub.release();
        let status = shelf.desk.api().get("m").await.unwrap().status?;
        (status.phase == Some(Phase::Ready)).then_some(status)
    })
    .await;
    assert_eq!(status.cache.unwrap().progress, None);
}
