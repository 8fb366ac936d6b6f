//! What is refused again and again is tried ever less often, whatever comes between.

use flexinfer_core::planning::writing::{Part, Writing};

use super::*;

/// How often `object` of the only model is tried to be written while it is looked at all the time, and the most that
/// waits which double allow.
async fn tries(scene: &Scene, object: &str) -> (usize, usize) {
    let begun = Instant::now();
    let again = async || {
        scene.pass().await;
        begun.elapsed() > Duration::from_secs(5) && scene.server.writes(object) >= 2
    };
    assert!(eventually_async(Duration::from_secs(60), again).await, "it is not tried again");
    // At 0, 1, 3 seconds, and so on.
    let seconds = usize::try_from(begun.elapsed().as_secs().ilog2()).unwrap();
    (scene.server.writes(object), 2 + seconds)
}

#[tokio::test]
async fn a_deployment_of_which_only_the_trial_is_taken_is_tried_ever_less_often() {
    let pinned = json!({ "backend": "simulator", "serverless": { "minReplicas": 1 } });
    let scene = Scene::of(&[("m", pinned)]);
    scene.server.rule(|call| {
        call.writes("deployments/m").then(|| refusal(403, "Forbidden", "not for real"))
    });
    let (tries, most) = tries(&scene, "deployments/m").await;
    assert!(tries <= most, "{tries} times");
    assert!(scene.server.trials("deployments/m") >= 1, "it was never tried");
}

/// The Model is being deleted, and the watch has told of it.
fn with_a_model_that_goes() -> Scene {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    let mut deleted = model("m", &json!({ "backend": "simulator" }));
    let now = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    deleted.metadata.deletion_timestamp = Some(now);
    deleted.metadata.resource_version = Some("2".to_owned());
    scene.server.put("models/m", serde_json::to_value(&deleted).unwrap());
    scene.world.saw_model(deleted);
    scene
}

#[tokio::test]
async fn a_finalizer_that_may_not_be_removed_is_tried_ever_less_often() {
    let scene = with_a_model_that_goes();
    scene.server.rule(|call| call.writes("models/m").then(|| refusal(403, "Forbidden", "kept")));
    let (tries, most) = tries(&scene, "models/m").await;
    assert!(tries <= most, "{tries} times");
    scene.server.rule(|_| None);
    let removed = async || {
        scene.pass().await;
        let model = scene.server.object("models/m").unwrap();
        model["metadata"]["finalizers"].as_array().is_some_and(Vec::is_empty)
    };
    assert!(eventually_async(Duration::from_secs(60), removed).await, "it is never let go");
}

#[tokio::test]
async fn a_model_that_is_let_go_does_not_come_back_with_the_servers_answer() {
    let scene = with_a_model_that_goes();
    // The watch tells of the end before the answer to the write comes that was it.
    let world = Arc::clone(&scene.world);
    scene.server.rule(move |call| {
        if call.writes("models/m") {
            world.lost_model(&ModelId::new("default", "m"));
        }
        None
    });
    scene.pass().await;
    assert_eq!(scene.server.writes("models/m"), 1, "it was not let go");
    assert_eq!(scene.world.models(), 0, "a ghost");
}

/// A minute ago `part` failed so often that only one more try is wanting until it is told.
fn failed_before(scene: &Scene, mut writing: Writing, times: usize) {
    let long_ago = scene.world.clock.now() - Duration::from_mins(1);
    for _ in 0..times {
        writing.fail(Part::Engine, "before", Some(1), long_ago);
    }
    scene.world.note_writing(&scene.model(), writing);
}

#[tokio::test]
async fn what_fails_for_good_is_told_and_no_status_is_written_for_each_try() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    let mut times = 0;
    scene.server.rule(move |call| {
        call.writes("deployments/m").then(|| {
            times += 1;
            refusal(500, "InternalError", &format!("etcdserver: no leader ({times})"))
        })
    });
    failed_before(&scene, Writing::default(), 5);
    scene.pass().await;
    scene.pass().await;
    let status = scene.status_of("m").unwrap();
    let conditions = status["conditions"].as_array().unwrap();
    let applied = conditions.iter().find(|found| found["type"] == "Applied").unwrap();
    assert_eq!((&applied["status"], &applied["reason"]), (&json!("False"), &json!("WriteFailed")));
    let message = applied["message"].as_str().unwrap();
    assert!(message.ends_with("etcdserver: no leader (1)"), "{message}");
    assert_eq!(status["phase"], "Idle", "it may come with the next try");

    let told = scene.server.writes("models/m/status");
    let sight = scene.world.sight(&scene.group).unwrap();
    failed_before(&scene, sight.members[0].writing.clone(), 1);
    scene.pass().await;
    scene.pass().await;
    assert_eq!(scene.server.writes("deployments/m"), 2, "it is tried on");
    assert_eq!(scene.server.writes("models/m/status"), told);
}
