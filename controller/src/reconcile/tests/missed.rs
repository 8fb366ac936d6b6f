//! Writes that fail: whose they are waits, nobody else does.

use flexinfer_core::planning::writing::{Part, Writing};

use super::*;

const NAMES: [&str; 2] = ["a", "b"];

/// Two models of one group.
fn pair() -> Scene {
    let gpu = json!({ "vendor": "nvidia", "shared": "desk" });
    let spec = json!({ "backend": "simulator", "gpu": gpu });
    Scene::of(&NAMES.map(|name| (name, spec.clone())))
}

#[tokio::test]
async fn an_object_that_is_not_written_costs_the_neighbour_nothing_and_both_have_a_status() {
    for (code, reason) in [(500, "InternalError"), (404, "NotFound"), (409, "Conflict")] {
        for object in ["services/a", "deployments/a"] {
            let scene = pair();
            scene.server.rule(move |call| {
                call.writes(object).then(|| refusal(code, reason, "etcdserver: not now"))
            });
            let missed = scene.pass().await;
            assert_eq!(missed.len(), 1, "{code} {object}: {missed:?}");
            for other in ["deployments/b", "services/b"] {
                assert!(scene.server.object(other).is_some(), "{code} {object}: no {other}");
            }
            for name in NAMES {
                let status = scene.status_of(name).unwrap_or_default();
                assert_eq!(status["phase"], "Idle", "{code} {object}: {name} has {status}");
            }
            scene.server.rule(|_| None);
            scene.reconciler.world.note_writing(&scene.model(), Writing::default());
            assert_eq!(scene.pass().await.len(), 0, "{code} {object}");
            assert!(scene.server.object(object).is_some(), "{code} {object}: never made");
        }
    }
}

#[tokio::test]
async fn a_status_that_is_not_written_costs_the_neighbour_nothing() {
    for (code, reason) in [(500, "InternalError"), (403, "Forbidden"), (404, "NotFound")] {
        let scene = pair();
        scene.server.rule(move |call| {
            call.writes("models/a/status").then(|| refusal(code, reason, "not this one"))
        });
        assert_eq!(scene.pass().await.len(), 1, "{code}");
        assert_eq!(scene.status_of("b").unwrap_or_default()["phase"], "Idle", "{code}");
        assert!(scene.server.object("deployments/a").is_some(), "{code}");
    }
}

#[tokio::test]
async fn what_fails_is_left_alone_for_a_while_whoever_else_of_its_group_is_looked_at() {
    let scene = pair();
    scene
        .server
        .rule(|call| call.writes("services/a").then(|| refusal(500, "InternalError", "not now")));
    scene.pass().await;
    let tried = scene.server.writes("services/a");
    // Within the first second: the group of the other is busy.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(200) {
        scene.pass().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let most = 2 + usize::try_from(begun.elapsed().as_secs()).unwrap();
    let tries = scene.server.writes("services/a") / tried;
    assert!(tries <= most, "{tries} tries in {:?}", begun.elapsed());
}

#[tokio::test]
async fn an_engine_is_put_to_sleep_although_its_files_are_refused_in_that_pass() {
    let spec = |folder: &str| {
        let config = json!({ "modelsPath": folder });
        json!({ "backend": "comfyui", "image": "it:1", "gpu": { "vendor": "nvidia" }, "config": config })
    };
    let scene = Scene::of(&[("m", spec("/first"))]);
    assert_eq!(scene.pass().await.len(), 0);
    assert!(scene.server.object("configmaps/m-files").is_some());
    let made = scene.server.object("deployments/m").unwrap();

    // It has served, and been leaving for an hour, when its Model is edited.
    scene.changed("deployments/m", |object| object["spec"]["replicas"] = json!(1));
    scene.leaves_for_long();
    let mut edited = model("m", &spec("/second"));
    (edited.metadata.generation, edited.metadata.resource_version) = (Some(2), Some("99".into()));
    scene.world.saw_model(edited);
    scene.server.rule(|call| {
        call.writes("configmaps/m-files").then(|| refusal(403, "Forbidden", "denied"))
    });
    scene.pass().await;
    let left = scene.server.object("deployments/m").unwrap();
    assert_eq!(left["spec"]["replicas"], 0);
    assert_eq!(left["spec"]["template"], made["spec"]["template"], "its files are not there");
}

#[tokio::test]
async fn a_deployment_that_was_refused_is_made_although_no_trial_can_be_made() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    let untried = "admission webhook \"billing\" does not support dry run";
    scene.server.rule(move |call| match call {
        call if call.is_trial() => Some(refusal(400, "BadRequest", untried)),
        call => call.writes("deployments/m").then(|| refusal(403, "Forbidden", "no budget")),
    });
    scene.pass().await;
    assert_eq!(scene.status_of("m"), None, "the next pass tells it");
    scene.pass().await;
    assert_eq!(scene.status_of("m").unwrap()["phase"], "Failed");

    scene.server.rule(move |call| call.is_trial().then(|| refusal(400, "BadRequest", untried)));
    // Tried again after a while, and told by the pass after that.
    let well = async || {
        scene.pass().await;
        scene.status_of("m").unwrap()["phase"] == "Idle"
    };
    assert!(eventually_async(Duration::from_secs(60), well).await, "it is never made");
    assert_eq!(scene.server.object("deployments/m").unwrap()["spec"]["replicas"], 0);
    let sight = scene.world.sight(&scene.group).unwrap();
    assert!(!sight.members[0].writing.is_refused(Part::Engine));
}

#[tokio::test]
async fn a_finalizer_that_is_refused_is_told_and_the_model_begins_as_soon_as_it_is_taken() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    let mut unheld = model("m", &json!({ "backend": "simulator" }));
    (unheld.metadata.finalizers, unheld.metadata.resource_version) = (None, Some("2".to_owned()));
    scene.server.put("models/m", serde_json::to_value(&unheld).unwrap());
    scene.world.saw_model(unheld);
    scene
        .server
        .rule(|call| call.writes("models/m").then(|| refusal(403, "Forbidden", "no right")));
    scene.pass().await;
    assert_eq!(scene.status_of("m"), None, "the next pass tells it");
    scene.pass().await;
    let status = scene.status_of("m").unwrap();
    assert_eq!(status["phase"], "Failed");
    let conditions = status["conditions"].as_array().unwrap();
    let applied = conditions.iter().find(|found| found["type"] == "Applied").unwrap();
    assert_eq!((&applied["status"], &applied["reason"]), (&json!("False"), &json!("Refused")));
    assert!(applied["message"].as_str().unwrap().contains("no right"), "{applied}");
    assert_eq!(scene.server.object("deployments/m"), None);

    scene.server.rule(|_| None);
    let well = async || {
        scene.pass().await;
        scene.status_of("m").unwrap()["phase"] == "Idle"
    };
    assert!(eventually_async(Duration::from_secs(60), well).await, "it never begins");
    assert!(scene.server.object("deployments/m").is_some());
}

#[tokio::test]
async fn a_pod_that_may_not_be_deleted_keeps_no_other_there() {
    let scene = Scene::of(&[("m", json!({ "backend": "simulator" }))]);
    for name in ["m-0", "m-1"] {
        let failed = json!({
            "metadata": {
                "name": name, "namespace": "default", "uid": format!("of-{name}"),
                "labels": { keys::MODEL: "m" }, "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "status": { "phase": "Failed" },
        });
        scene.world.saw_pod(serde_json::from_value(failed).unwrap());
    }
    scene.server.rule(|call| call.writes("pods/m-0").then(|| refusal(403, "Forbidden", "kept")));
    scene.pass().await;
    assert_eq!(["pods/m-0", "pods/m-1"].map(|pod| scene.server.writes(pod)), [1, 1]);
}
