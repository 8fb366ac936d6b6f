//! Objects that the API server does not take: whoever waits is told what it said, what runs goes on, and all is well
//! once they are taken.

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::Phase;
use flexinfer_testkit::api_server::refusal;
use serde_json::json;

use super::pair::{NAMES, Pair};
use super::told::{Scene, claim_with_weights};
use crate::controller::{Desk, simulated};
use crate::gateway::code;
use crate::middleman::{Call, Middleman, Treatment};
use crate::shared::{World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_deployments_is_told_and_served_once_there_is_room() {
    let scene = Scene::new().await;
    scene.quota("none", &json!({ "count/deployments.apps": "0" })).await;
    scene.apply(&simulated(&json!({}))).await;
    scene.is_told("QuotaExceeded", "count/deployments.apps").await;
    scene.no_quota("none").await;
    scene.is_served_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_of_storage_and_of_jobs_are_told_and_served_once_there_is_room() {
    let scene = Scene::new().await;
    claim_with_weights(&scene.desk, "weights").await;
    scene.quota("storage", &json!({ "requests.storage": "1Gi" })).await;
    scene.quota("jobs", &json!({ "count/jobs.batch": "0" })).await;
    let copied = json!({ "source": "pvc://weights/m", "cache": { "strategy": "SharedPVC" } });
    scene.apply(&simulated(&copied)).await;
    scene.is_told("QuotaExceeded", "requests.storage").await;
    scene.no_quota("storage").await;
    let jobs = |status: &ModelStatus| {
        status.message.as_ref().is_some_and(|message| message.contains("count/jobs.batch"))
    };
    scene.desk.until("without room for its Job", "m", jobs).await;
    scene.is_told("QuotaExceeded", "count/jobs.batch").await;
    scene.no_quota("jobs").await;
    scene.is_served_again().await;
}

fn applied(status: &ModelStatus) -> Option<(String, String)> {
    let found = status.conditions.iter().find(|found| found.type_ == "Applied")?;
    Some((found.status.clone(), found.reason.clone()))
}

fn applied_is(status: &'static str, reason: &'static str) -> impl Fn(&ModelStatus) -> bool + Clone {
    move |found| applied(found) == Some((status.to_owned(), reason.to_owned()))
}

/// Refuses what is written to this object.
fn refuse(middleman: &Middleman, object: &'static str) {
    middleman.rule(move |call: &Call| {
        if call.writes() && call.path.ends_with(object) {
            let message = "admission webhook denied the request: engines need an owner label";
            return Treatment::Answered(refusal(403, "Forbidden", message));
        }
        Treatment::Pass
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_whose_service_is_refused_serves_and_sleeps_as_ever() {
    let mut desk = Desk::of(World::new().await).await;
    let middleman = Middleman::before(desk.world()).await;
    desk.start_controller_by(&middleman.kubeconfig(), &[]);
    let spec = |pinned: i32, labels: &[&str]| {
        let rest = json!({ "minReplicas": pinned, "idleTimeout": "4s" });
        simulated(&json!({ "serverless": rest, "serviceLabels": labels }))
    };
    desk.apply("m", &spec(1, &[])).await;
    desk.until_phase("m", Phase::Ready).await;
    refuse(&middleman, "/services/m");
    desk.apply("m", &spec(1, &["chat"])).await;
    let status = desk.until("told of the refusal", "m", applied_is("False", "Refused")).await;
    assert_eq!(status.phase, Some(Phase::Ready), "it serves: {status:#?}");
    assert!(status.message.unwrap().contains("owner label"));
    desk.apply("m", &spec(0, &["chat"])).await;
    eventually("asleep all the same", async || (desk.replicas("m").await == Some(0)).then_some(()))
        .await;
    middleman.rule(|_| Treatment::Pass);
    desk.until("as it shall be", "m", applied_is("True", "Applied")).await;
    assert!(desk.events("m").await.contains(&"Refused".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_deployment_is_refused_is_told_of_and_takes_the_gpu_from_nobody() {
    let mut pair = Pair::of(World::new().await).await;
    let middleman = Middleman::before(pair.desk.world()).await;
    let [forbidden, allowed] = NAMES;
    refuse(&middleman, "/deployments/a");
    pair.start_controller(&middleman.kubeconfig());
    pair.ask(allowed).await;
    let told = pair.desk.until("refused", forbidden, applied_is("False", "Refused")).await;
    assert_eq!(told.phase, Some(Phase::Failed), "{told:#?}");
    let engine = pair.desk.pods(allowed).await;
    for _ in 0..3 {
        let answer = pair.gateway.ask(forbidden).await;
        let text = answer.text();
        assert_eq!(
            (answer.status(), code(&answer)),
            (503, "activation_failed".to_owned()),
            "{text}"
        );
        assert!(text.contains("owner label"), "{text}");
        pair.ask(allowed).await;
    }
    let uids = |pods: Vec<k8s_openapi::api::core::v1::Pod>| -> Vec<Option<String>> {
        pods.into_iter().map(|pod| pod.metadata.uid).collect()
    };
    assert_eq!(uids(pair.desk.pods(allowed).await), uids(engine), "it had to leave");
    middleman.rule(|_| Treatment::Pass);
    pair.desk.until("as it shall be", forbidden, applied_is("True", "Applied")).await;
    pair.ask(forbidden).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_service_cannot_be_stored_costs_its_neighbour_nothing() {
    let mut pair = Pair::of(World::new().await).await;
    let middleman = Middleman::before(pair.desk.world()).await;
    let [failing, neighbour] = NAMES;
    middleman.rule(|call: &Call| {
        if call.writes() && call.path.ends_with("/services/a") {
            let message = "etcdserver: request timed out";
            return Treatment::Answered(refusal(500, "InternalError", message));
        }
        Treatment::Pass
    });
    pair.start_controller(&middleman.kubeconfig());
    pair.ask(neighbour).await;
    pair.desk.until_phase(failing, Phase::Idle).await;
    let told = pair.desk.until("told of", failing, applied_is("False", "WriteFailed")).await;
    assert_eq!(told.phase, Some(Phase::Idle), "it may pass: {told:#?}");
    middleman.rule(|_| Treatment::Pass);
    pair.ask(failing).await;
    pair.desk.until("as it shall be", failing, applied_is("True", "Applied")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_whose_new_weights_are_refused_serves_on_with_what_it_has() {
    let mut desk = Desk::of(World::new().await).await;
    let middleman = Middleman::before(desk.world()).await;
    desk.start_controller_by(&middleman.kubeconfig(), &[]);
    let folder = claim_with_weights(&desk, "weights").await;
    std::fs::create_dir(folder.join("n")).unwrap();
    std::fs::write(folder.join("n/weights.bin"), "others").unwrap();
    let copied = |folder: &str| {
        let source = format!("pvc://weights/{folder}");
        let (cache, rest) = (json!({ "strategy": "SharedPVC" }), json!({ "minReplicas": 1 }));
        simulated(&json!({ "source": source, "cache": cache, "serverless": rest }))
    };
    desk.apply("m", &copied("m")).await;
    desk.until_phase("m", Phase::Ready).await;
    let engine = desk.pods("m").await.remove(0);

    refuse(&middleman, "/jobs/m-cache-copy");
    desk.apply("m", &copied("n")).await;
    let status = desk.until("told of the refusal", "m", applied_is("False", "Refused")).await;
    assert_eq!(status.phase, Some(Phase::Ready), "it serves: {status:#?}");
    let cached = status.conditions.iter().find(|found| found.type_ == "Cached").unwrap();
    assert_eq!((&*cached.status, &*cached.reason), ("False", "Refused"));
    let pods = desk.pods("m").await;
    assert_eq!(pods[0].metadata.uid, engine.metadata.uid, "it was started anew");

    middleman.rule(|_| Treatment::Pass);
    eventually("an engine reads the new ones", async || {
        let pods = serde_json::to_string(&desk.pods("m").await).unwrap();
        pods.contains("/models/n").then_some(())
    })
    .await;
    desk.until_phase("m", Phase::Ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_model_whose_finalizer_may_not_be_taken_off_says_so_and_goes_once_it_may() {
    let mut desk = Desk::of(World::new().await).await;
    let middleman = Middleman::before(desk.world()).await;
    desk.start_controller_by(&middleman.kubeconfig(), &[]);
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
    refuse(&middleman, "/models/m");
    desk.api().delete("m", &kube::api::DeleteParams::default()).await.unwrap();
    let status = desk.until("told of the refusal", "m", applied_is("False", "Refused")).await;
    let applied = status.conditions.iter().find(|found| found.type_ == "Applied").unwrap();
    assert!(applied.message.contains("owner label"), "{}", applied.message);
    middleman.rule(|_| Treatment::Pass);
    eventually("the Model is gone", async || {
        desk.api().get_opt("m").await.unwrap().is_none().then_some(())
    })
    .await;
}
