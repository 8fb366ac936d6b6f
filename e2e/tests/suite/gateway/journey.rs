//! The gateway and the controller together: nothing is between them but a Model's status.

use flexinfer_crds::model::Phase;
use serde_json::json;

use super::world::start;
use crate::controller::{Desk, simulated};

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_model_is_woken_served_put_to_sleep_and_woken_again() {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    desk.apply("m", &simulated(&json!({ "serverless": { "idleTimeout": "5s" } }))).await;
    gateway.knows("m").await;
    for round in 0..2 {
        let answer = gateway.ask("m").await;
        assert_eq!(answer.status(), 200, "round {round}: {}\n{}", answer.text(), desk.log());
        desk.until_phase("m", Phase::Idle).await;
    }
}
