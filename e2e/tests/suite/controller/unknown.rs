//! What a controller, or the gateways, cannot know is not taken for nothing.

use std::time::{Duration, Instant};

use flexinfer_crds::model::Phase;
use serde_json::json;

use super::{Desk, simulated};
use crate::shared::eventually;

#[tokio::test]
async fn queue_08_a_controller_that_begins_waits_a_whole_idle_time_and_keeps_what_is_busy() {
    let mut desk = Desk::new().await;
    let idle = Duration::from_secs(6);
    for name in ["idle", "busy"] {
        desk.apply(name, &simulated(&json!({ "serverless": { "idleTimeout": "6s" } }))).await;
    }
    eventually("both are up", async || {
        let mut up = true;
        for name in ["idle", "busy"] {
            // Renewed as a gateway does, or the one would go to sleep while the other is waited for.
            desk.traffic(name, 0, 1).await;
            let phase = desk.api().get(name).await.unwrap().status.and_then(|status| status.phase);
            up &= phase == Some(Phase::Ready);
        }
        up.then_some(())
    })
    .await;
    desk.traffic("busy", 1, 0).await;
    desk.traffic("idle", 0, 0).await;
    desk.kill_controller().await;
    // For longer than the idle time nobody looks, and gateways cannot know that nobody does.
    tokio::time::sleep(idle + Duration::from_secs(1)).await;
    let begun = Instant::now();
    desk.start_controller(&[]);
    eventually("the idle one is put to sleep", async || {
        // As a gateway that has a stream open does.
        desk.traffic("busy", 1, 0).await;
        (desk.replicas("idle").await == Some(0)).then_some(())
    })
    .await;
    assert!(begun.elapsed() >= idle, "asleep after {:?}", begun.elapsed());
    assert_eq!(desk.replicas("busy").await, Some(1));
    desk.until_phase("busy", Phase::Ready).await;

    // All gateways go at once, and with them the stream: it ended when that was seen, not before.
    let gone = Instant::now();
    desk.no_traffic("busy").await;
    eventually("it is put to sleep too", async || {
        (desk.replicas("busy").await == Some(0)).then_some(())
    })
    .await;
    assert!(gone.elapsed() >= idle, "asleep after {:?}", gone.elapsed());
}
