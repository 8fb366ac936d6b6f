//! A model whose replicas are another autoscaler's to say.

use flexinfer_crds::model::Phase;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{Desk, simulated};
use crate::crds::model;
use crate::rights::Account;
use crate::shared::eventually;

/// Reports of five gateways, each under its own manager.
async fn five_gateways_wait(desk: &Desk, name: &str, waiting: i32) {
    for gateway in ["a", "b", "c", "d", "e"] {
        let report = json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": { "name": name },
            "status": { "traffic": [{
                "gateway": gateway, "inFlight": 0, "waiting": waiting, "peak": 1,
                "renewTime": format!("2026-01-01T00:00:0{waiting}.000000Z"),
            }] },
        });
        let parameters = PatchParams::apply(&format!("flexinfer-gateway-{gateway}")).force();
        desk.api().patch_status(name, &parameters, &Patch::Apply(report)).await.unwrap();
    }
}

/// How often the controller wrote Deployments so far.
fn writes(desk: &Desk) -> usize {
    let controller = Account::Controller.user(desk.world());
    let writes = desk.world().cluster.writes().unwrap();
    writes
        .iter()
        .filter(|write| write.user == controller && write.resource == "deployments")
        .count()
}

#[tokio::test]
async fn queue_14_five_gateways_wake_a_model_once_and_what_an_autoscaler_set_stays() {
    let desk = Desk::new().await;
    let mut spec = simulated(&json!({ "serverless": { "idleTimeout": "5m" } }));
    spec["nodeSelector"] = json!({ "test": desk.world().namespace });
    let mut scaled: Value = model("m", &spec);
    scaled["metadata"]["annotations"] = json!({ "flexinfer.ai/autoscaler": "external" });
    desk.models.apply(&scaled).await;
    desk.until_phase("m", Phase::Idle).await;
    eventually("nothing is left to write", async || {
        let before = writes(&desk);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        (writes(&desk) == before).then_some(())
    })
    .await;
    let before = writes(&desk);

    five_gateways_wait(&desk, "m", 1).await;
    desk.until_phase("m", Phase::Ready).await;
    assert_eq!(desk.replicas("m").await, Some(1));
    eventually("the write is in the log", async || (writes(&desk) > before).then_some(())).await;
    assert_eq!(writes(&desk), before + 1, "one step, whoever asks");

    desk.models.succeed(&["scale", "deployment/m", "--replicas=3"], "").await;
    eventually("three pods", async || (desk.pods("m").await.len() == 3).then_some(())).await;
    five_gateways_wait(&desk, "m", 2).await;
    five_gateways_wait(&desk, "m", 0).await;
    desk.models.succeed(&["annotate", "model", "m", "flexinfer.ai/force-reconcile=1"], "").await;
    desk.until("seen by the controller", "m", |status| status.phase == Some(Phase::Ready)).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(desk.replicas("m").await, Some(3));
    // What somebody changed is looked at once, by an apply that leaves the replicas out.
    assert!(writes(&desk) <= before + 2, "it writes again and again");
}
