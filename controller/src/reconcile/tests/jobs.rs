//! Jobs that are deleted, and come again.

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
