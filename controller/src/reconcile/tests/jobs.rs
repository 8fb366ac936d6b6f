//! Jobs: what keeps one from being made or deleted keeps no other, and those that somebody deletes come again.

use flexinfer_core::planning::reconcile::Wanted;
use flexinfer_core::planning::writing::Part;
use http::Method;
use k8s_openapi::api::batch::v1::Job;

use super::put_back::applied;
use super::*;

/// A Job of the Model `m`, which has come to this.
fn job(name: &str, conditions: &Value) -> Job {
    let job = json!({
        "metadata": { "name": name, "namespace": "default", "labels": { keys::MODEL: "m" } },
        "spec": { "template": {} },
        "status": { "conditions": conditions },
    });
    serde_json::from_value(job).unwrap()
}

/// The Job `m-fetch` is deleted, where there is one, when it has come to this, and wanted again.
async fn deleted_and_wanted(scene: &Scene, conditions: &Value) {
    if scene.server.object("jobs/m-fetch").is_some() {
        scene.server.remove("jobs/m-fetch");
        scene.world.saw_job(job("m-fetch", conditions));
        scene.world.lost_job(&job("m-fetch", conditions));
    }
    let sight = scene.world.sight(&scene.group).unwrap();
    let wanted = vec![job("m-fetch", &json!([]))];
    scene.reconciler.make_jobs(&sight.members[0], wanted).await.unwrap();
}

#[tokio::test]
async fn a_job_that_somebody_deletes_again_and_again_is_made_ever_less_often_and_told() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        deleted_and_wanted(&scene, &json!([])).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // For the first time, at once when it is gone, a second after that, then after two.
    let most = 3 + usize::try_from(begun.elapsed().as_secs().ilog2()).unwrap();
    let made = scene.server.writes("jobs/m-fetch");
    assert!(made > 1 && made <= most, "{made} times");
    scene.pass().await;
    let (reason, message) = applied(&scene);
    assert_eq!(reason, "FieldConflict");
    assert!(message.starts_with("Job `m-fetch` is deleted again and again"), "{message}");
}

#[tokio::test]
async fn a_job_that_is_deleted_when_it_has_ended_is_made_anew_at_once_each_time() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    for made in 1..=5 {
        let ended = json!([{ "type": "Complete", "status": "True" }]);
        deleted_and_wanted(&scene, &ended).await;
        assert_eq!(scene.server.writes("jobs/m-fetch"), made);
    }
    scene.pass().await;
    assert_eq!(applied(&scene).0, "Applied");
}

#[tokio::test]
async fn a_job_that_this_controller_itself_deletes_is_made_anew_at_once() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    for made in 1..=5 {
        let sight = scene.world.sight(&scene.group).unwrap();
        let member = &sight.members[0];
        scene.reconciler.make_jobs(member, vec![job("m-fetch", &json!([]))]).await.unwrap();
        assert_eq!(scene.server.writes("jobs/m-fetch"), 2 * made - 1);
        scene.reconciler.delete_job(member, "m-fetch").await.unwrap();
        scene.world.lost_job(&job("m-fetch", &json!([])));
    }
}

#[tokio::test]
async fn a_job_that_may_not_be_made_keeps_no_other_from_it() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    scene.pass().await;
    scene.server.rule(|call| call.writes("jobs/m-0").then(|| refusal(403, "Forbidden", "kept")));
    let sight = scene.world.sight(&scene.group).unwrap();
    let wanted = ["m-0", "m-1"].map(|name| job(name, &json!([])));
    let made = scene.reconciler.make_jobs(&sight.members[0], wanted.into()).await;
    assert!(made.unwrap_err().trouble().is_some(), "it is told");
    assert!(scene.server.object("jobs/m-1").is_some());
}

#[tokio::test]
async fn jobs_are_made_in_the_pass_in_which_others_are_deleted_and_also_where_they_may_not_be() {
    for allowed in [true, false] {
        let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
        scene.pass().await;
        scene.server.rule(move |call| {
            let deletes = call.method == Method::DELETE && call.object == "jobs/m-old";
            (deletes && !allowed).then(|| refusal(403, "Forbidden", "kept"))
        });
        let sight = scene.world.sight(&scene.group).unwrap();
        let Plan { mut wanted, revisit: _ } = plan(&scene.reconciler.observed(&sight));
        let wanted = Wanted {
            outdated: ["m-old", "m-older"].map(str::to_owned).into(),
            jobs: vec![job("m-new", &json!([]))],
            ..wanted.remove(0)
        };
        scene.reconciler.settle(&scene.group, &sight.members[0], wanted).await.unwrap();
        let jobs = ["jobs/m-old", "jobs/m-older", "jobs/m-new"];
        let tried = jobs.map(|job| scene.server.writes(job));
        assert_eq!(tried, [1, 1, 1], "allowed: {allowed}");
        let refused = scene.world.sight(&scene.group).unwrap().members[0].writing.clone();
        assert_eq!(refused.is_refused(Part::Jobs), !allowed);
    }
}
