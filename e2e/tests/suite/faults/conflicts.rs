//! Writes that are refused each the first time, since everybody writes at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flexinfer_testkit::api_server::refusal;
use serde_json::json;

use super::pair::{NAMES, Pair};
use crate::controller::simulated;
use crate::gateway::start;
use crate::middleman::{Call, Middleman, Treatment};
use crate::shared::{World, eventually};

/// Refuses every other try of each write, the first one first; counts what it refused.
fn refuse_first_tries(middleman: &Middleman) -> Arc<AtomicUsize> {
    let refused = Arc::new(AtomicUsize::new(0));
    let (count, mut tries) = (Arc::clone(&refused), HashMap::<String, usize>::new());
    middleman.rule(move |call: &Call| {
        if !call.writes() {
            return Treatment::Pass;
        }
        let tried = tries.entry(call.act()).or_default();
        *tried += 1;
        if tried.is_multiple_of(2) {
            return Treatment::Pass;
        }
        count.fetch_add(1, Ordering::Relaxed);
        let message = "the object has been modified; please apply your changes to the latest version and try again";
        Treatment::Answered(refusal(409, "Conflict", message))
    });
    refused
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_conflict_at_every_write_models_are_swapped_and_no_request_is_lost() {
    let mut pair = Pair::of(World::new().await).await;
    let controllers = Middleman::before(pair.desk.world()).await;
    let gateways = Middleman::before(pair.desk.world()).await;
    let refused = refuse_first_tries(&controllers);
    let reports_refused = refuse_first_tries(&gateways);
    pair.start_controller(&controllers.kubeconfig());
    // Its reports are refused too: demand is told in the end.
    pair.gateway = start(&pair.desk.models, "two", gateways.kubeconfig(), &[]).await;
    for name in [NAMES[0], NAMES[1], NAMES[0]] {
        pair.gateway.knows(name).await;
        pair.ask(name).await;
        pair.settled(name, "after a swap").await;
    }
    assert!(refused.load(Ordering::Relaxed) >= 8, "hardly anything was refused");
    assert!(reports_refused.load(Ordering::Relaxed) >= 3, "hardly any report was refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_conflict_at_every_write_a_model_is_deleted_to_its_last_object() {
    let mut pair = Pair::of(World::new().await).await;
    let controllers = Middleman::before(pair.desk.world()).await;
    refuse_first_tries(&controllers);
    pair.start_controller(&controllers.kubeconfig());
    pair.desk.apply("m", &simulated(&json!({ "serverless": { "minReplicas": 1 } }))).await;
    pair.desk.until_phase("m", flexinfer_crds::model::Phase::Ready).await;
    let models = pair.desk.api();
    models.delete("m", &kube::api::DeleteParams::default()).await.unwrap();
    eventually("the Model and its pods are gone", async || {
        let model = models.get_opt("m").await.unwrap();
        (model.is_none() && pair.desk.pods("m").await.is_empty()).then_some(())
    })
    .await;
}
