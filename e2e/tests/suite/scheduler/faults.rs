//! Extenders that are down, slow, or answer garbage: pods wait, unless the scheduler was told to go on without.

use std::time::Duration;

use serde_json::json;

use super::extender::Scripted;
use super::{Stage, extender};

const FAULTS: [&str; 4] = ["down", "slow", "garbage", "error"];

async fn scripted(fault: &str) -> Scripted {
    match fault {
        "slow" => Scripted::answering(200, "{}", Duration::from_secs(600)).await,
        "garbage" => Scripted::answering(200, "{\"NodeNames\": 7", Duration::ZERO).await,
        _ => Scripted::answering(500, "no", Duration::ZERO).await,
    }
}

/// A port that nobody listens on: it was somebody's a moment ago.
async fn nobodys_port() -> u16 {
    scripted("error").await.port
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_answer_pods_wait_unless_the_extender_may_be_ignored() {
    let mut stage = Stage::new().await;
    let mut kept = Vec::new();
    for fault in FAULTS {
        let port = if fault == "down" {
            nobodys_port().await
        } else {
            let extender = scripted(fault).await;
            let port = extender.port;
            kept.push(extender);
            port
        };
        let timeout = json!({ "httpTimeout": "500ms" });
        stage.schedule_by(fault, &extender(port, &timeout));
        let ignored = json!({ "httpTimeout": "500ms", "ignorable": true });
        stage.schedule_by(&format!("{fault}-ignored"), &extender(port, &ignored));
        stage.node(fault, "node", &json!({})).await;
        stage.pod(fault, fault, "waits", &json!({})).await;
        stage.pod(&format!("{fault}-ignored"), fault, "goes-on", &json!({})).await;
    }
    for fault in FAULTS {
        assert_eq!(stage.landed(fault, "goes-on").await, "node", "{fault}");
        // The scheduler says that it could not ask; never that it placed the pod.
        stage.waits_because(fault, "waits", "").await;
        let pod = stage.pods().get(&format!("{fault}-waits")).await.unwrap();
        assert_eq!(pod.spec.unwrap().node_name, None, "{fault}");
    }
}
