//! The gateway and the controller together: nothing is between them but a Model's status.

use flexinfer_crds::model::Phase;
use serde_json::json;

use super::world::start;
use crate::controller::{Desk, simulated};

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_model_is_woken_served_put_to_sleep_and_woken_again() {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().cluster.kubeconfig(), &[]).await;
    desk.apply("m", &simulated(&json!({ "serverless": { "idleTimeout": "5s" } }))).await;
    gateway.knows("m").await;
    for round in 0..2 {
        let answer = gateway.ask("m").await;
        assert_eq!(answer.status(), 200, "round {round}: {}\n{}", answer.text(), desk.log());
        desk.until_phase("m", Phase::Idle).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_18_two_models_on_one_gpu_are_swapped_and_no_request_is_lost() {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().cluster.kubeconfig(), &[]).await;
    for name in ["a", "b"] {
        let shared =
            json!({ "gpu": { "vendor": "nvidia", "shared": "gpu0", "swapCooldown": "1s" } });
        desk.apply(name, &simulated(&shared)).await;
        gateway.knows(name).await;
    }
    for name in ["a", "b", "a"] {
        let answer = gateway.ask(name).await;
        assert_eq!(answer.status(), 200, "{name}: {}\n{}", answer.text(), desk.log());
    }
}
