//! Objects that somebody else writes too.

use flexinfer_core::planning::reconcile::WantedEngine;
use flexinfer_core::planning::writing::Contest;
use k8s_openapi::api::apps::v1::Deployment;

use super::*;
use crate::reconcile::putting_back::wish;
use crate::world::Kind;

/// A refusal to overwrite what this manager wrote.
fn conflict(manager: &str, field: &str) -> (u16, Value) {
    let (code, mut status) = refusal(409, "Conflict", "Apply failed with 1 conflict");
    status["details"] = json!({ "causes": [{
        "reason": "FieldManagerConflict",
        "message": format!("conflict with \"{manager}\" using apps/v1"),
        "field": field,
    }] });
    (code, status)
}

/// `manager` sets the image of the Deployment `m`.
fn meddle(scene: &Scene, manager: &str) {
    scene.changed("deployments/m", |object| {
        object["metadata"]["managedFields"] =
            json!([{ "manager": manager, "operation": "Update" }]);
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("theirs:1");
    });
}

/// Reason and message of the condition `Applied` of the Model `m`.
pub(super) fn applied(scene: &Scene) -> (String, String) {
    let status = scene.status_of("m").unwrap();
    let conditions = status["conditions"].as_array().unwrap();
    let told = conditions.iter().find(|found| found["type"] == "Applied").unwrap();
    let text = |key: &str| told[key].as_str().unwrap().to_owned();
    (text("reason"), text("message"))
}

#[tokio::test]
async fn what_another_writes_again_and_again_is_put_back_ever_less_often_and_told() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    let field = ".spec.template.spec.containers[name=\"model\"].image";
    scene.server.rule(move |call| {
        let polite = call.writes("deployments/m") && !call.query.contains("force=true");
        polite.then(|| conflict("kyverno", field))
    });
    let forced = |scene: &Scene| scene.server.writes("deployments/m") / 2;
    let (before, begun) = (forced(&scene), Instant::now());
    // It comes back as soon as it was put back.
    while begun.elapsed() < Duration::from_secs(4) {
        meddle(&scene, "kyverno");
        scene.pass().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // At 0, 1 and 3 seconds, and never more often than the wait that doubles lets it be.
    let put_back = forced(&scene) - before;
    let most = 2 + usize::try_from(begun.elapsed().as_secs().ilog2()).unwrap();
    assert!(put_back >= 1 && put_back <= most, "{put_back} times in {:?}", begun.elapsed());

    scene.pass().await;
    let (reason, message) = applied(&scene);
    assert_eq!(reason, "FieldConflict");
    assert!(message.contains(&format!("kyverno wrote {field}")), "{message}");
}

#[tokio::test]
async fn a_wish_of_its_own_is_written_at_once_and_is_no_dispute() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    meddle(&scene, "kyverno");
    scene.pass().await;
    meddle(&scene, "kyverno");
    scene.server.rule(|call| {
        let polite = call.writes("deployments/m") && !call.query.contains("force=true");
        polite.then(|| conflict("hpa", ".spec.replicas"))
    });
    let sight = scene.world.sight(&scene.group).unwrap();
    let member = &sight.members[0];
    let before = scene.server.writes("deployments/m");
    let engine = async |replicas: i32| {
        let mut wanted = member.deployment.as_deref().unwrap().clone();
        wanted.spec.replicas = Some(replicas);
        let wanted = WantedEngine::Deployment(Box::new(wanted));
        scene.reconciler.apply_engine(member, wanted).await.unwrap();
    };
    engine(0).await;
    assert_eq!(scene.server.writes("deployments/m"), before, "it waits");
    engine(1).await;
    assert!(scene.server.writes("deployments/m") > before, "scaled at once");
    let later = scene.world.sight(&scene.group).unwrap();
    assert_eq!(later.members[0].dispute, None, "replicas that are its own again, say");
}

#[tokio::test]
async fn a_claim_that_somebody_else_wrote_before_is_no_dispute() {
    let config = json!({ "ggufFile": "m.gguf" });
    let spec =
        json!({ "backend": "llamacpp", "image": "it:1", "source": "HF://a/b", "config": config });
    let scene = Scene::of(&[("m", spec)]);
    let claim = "persistentvolumeclaims/m-cache";
    scene.server.rule(move |call| {
        let polite = call.writes(claim) && !call.query.contains("force=true");
        polite.then(|| conflict("kubectl-patch", ".spec.resources.requests.storage"))
    });
    scene.pass().await;
    assert!(scene.server.object(claim).is_some());
    let sight = scene.world.sight(&scene.group).unwrap();
    assert_eq!(sight.members[0].dispute, None);
}

/// Somebody deletes the Deployment `m`, for good.
fn deleted(scene: &Scene) {
    let there = scene.server.object("deployments/m").unwrap();
    scene.server.remove("deployments/m");
    scene.world.lost_deployment(&serde_json::from_value(there).unwrap());
}

#[tokio::test]
async fn what_a_person_deletes_is_made_again_at_once_although_a_program_changes_it_all_the_time() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    for _ in 0..3 {
        meddle(&scene, "keel");
        scene.pass().await;
    }
    let left = scene.server.object("deployments/m").unwrap();
    assert_eq!(left["spec"]["template"]["spec"]["containers"][0]["image"], "theirs:1", "it waits");
    deleted(&scene);
    scene.pass().await;
    assert!(scene.server.object("deployments/m").is_some(), "made at once");
}

/// The Deployment `m` is being deleted, and these finalizers keep it.
fn going(scene: &Scene, finalizers: &[&str]) {
    scene.changed("deployments/m", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["finalizers"] = json!(finalizers);
    });
}

#[tokio::test]
async fn what_is_being_deleted_is_not_scaled_nor_is_that_counted() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    going(&scene, &["vendor.example/hold"]);
    let sight = scene.world.sight(&scene.group).unwrap();
    let member = &sight.members[0];
    let deployment = Box::new(member.deployment.as_deref().unwrap().clone());
    let before = scene.server.writes("deployments/m");
    for wanted in [
        WantedEngine::Scaled(1),
        WantedEngine::ScaledElsewhere { deployment: deployment.clone(), step: Some(1) },
        WantedEngine::Scaled(1),
    ] {
        scene.reconciler.apply_engine(member, wanted).await.unwrap();
    }
    assert_eq!(scene.server.writes("deployments/m"), before);
    let later = scene.world.sight(&scene.group).unwrap();
    assert_eq!(later.members[0].contests, member.contests, "it is counted");
}

#[tokio::test]
async fn what_is_kept_from_going_by_somebody_elses_finalizer_is_told_until_it_is_gone() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    going(&scene, &["vendor.example/hold"]);
    scene.pass().await;
    let (reason, message) = applied(&scene);
    assert_eq!(reason, "BeingDeleted");
    assert!(message.contains("`vendor.example/hold`"), "{message}");
    deleted(&scene);
    scene.pass().await;
    scene.pass().await;
    assert_eq!(applied(&scene).0, "Applied");
}

#[tokio::test]
async fn what_is_deleted_again_and_again_is_told_as_that_and_not_as_changed() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    let told = async || {
        if scene.server.object("deployments/m").is_some() {
            deleted(&scene);
        }
        scene.pass().await;
        applied(&scene).0 == "FieldConflict"
    };
    assert!(eventually_async(Duration::from_secs(60), told).await, "it is never told");
    let (_, message) = applied(&scene);
    assert!(message.starts_with("Deployment `m` is deleted again and again"), "{message}");
}

#[tokio::test]
async fn what_is_being_deleted_is_not_written_nor_counted_and_is_made_again_when_it_is_gone() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    going(&scene, &["foregroundDeletion"]);
    let written = scene.server.writes("deployments/m");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1500) {
        scene.pass().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(scene.server.writes("deployments/m"), written);
    deleted(&scene);
    scene.pass().await;
    assert!(scene.server.object("deployments/m").is_some(), "made at once");
    let sight = scene.world.sight(&scene.group).unwrap();
    assert_eq!(sight.members[0].dispute, None);
}

/// What `manager` writes of the Deployment `m` was put back often, for the last time so long ago.
fn was_put_back_often(scene: &Scene, manager: &str, ago: Duration) {
    let there = scene.server.object("deployments/m").unwrap();
    let wish = wish(&serde_json::from_value::<Deployment>(there).unwrap());
    let mut contest = Contest::default();
    for _ in 0..9 {
        contest.wrote(&wish, Some([manager.to_owned()].into()), scene.world.clock.now() - ago);
    }
    scene.world.note_contest(&scene.model(), (Kind::Deployment, "m"), contest);
}

/// How many replicas the Deployment `m` has after a pass in which `keda` has started one, eleven seconds after it was
/// put back.
async fn started_again(gpu: Value) -> Value {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator", "gpu": gpu }))]);
    scene.pass().await;
    was_put_back_often(&scene, "keda", Duration::from_secs(11));
    scene.changed("deployments/m", |object| {
        object["metadata"]["managedFields"] =
            json!([{ "manager": "keda", "operation": "Update", "subresource": "scale" }]);
        object["spec"]["replicas"] = json!(1);
    });
    scene.leaves_for_long();
    scene.pass().await;
    scene.server.object("deployments/m").unwrap()["spec"]["replicas"].clone()
}

#[tokio::test]
async fn an_engine_on_a_shared_gpu_that_somebody_starts_again_and_again_is_ended_soon() {
    assert_eq!(started_again(json!({ "vendor": "nvidia", "shared": "desk" })).await, 0);
    assert_eq!(started_again(json!({ "vendor": "nvidia" })).await, 1, "it costs nobody a GPU");
}

#[tokio::test]
async fn who_tells_how_an_object_is_does_not_make_its_next_put_back_come_early() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    // The next one is due minutes from now, however slow the machine is.
    was_put_back_often(&scene, "kyverno", Duration::ZERO);
    meddle(&scene, "kyverno");
    scene.pass().await;
    let before = scene.server.writes("deployments/m");
    scene.changed("deployments/m", |object| {
        let told = json!({ "manager": "kube-controller-manager", "operation": "Update", "subresource": "status" });
        object["metadata"]["managedFields"].as_array_mut().unwrap().push(told);
    });
    scene.pass().await;
    assert_eq!(scene.server.writes("deployments/m"), before);
}
