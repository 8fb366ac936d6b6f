//! Engines on nodes that are about to be taken away, where not all writes are taken.

use k8s_openapi::api::core::v1::{Node, Pod};

use super::*;

const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// A model that always has so many engines.
fn spec(replicas: usize) -> Value {
    let serverless = json!({ "minReplicas": replicas, "maxReplicas": replicas });
    json!({ "backend": "simulator", "serverless": serverless })
}

/// A model with an engine on the node `n1` for each of these names.
fn engines(names: &[&str]) -> Scene {
    let scene = Scene::of(&[("m", spec(names.len()))]);
    for name in names {
        scene.world.saw_pod(pod(name, &json!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO }],
        })));
    }
    scene
}

fn pod(name: &str, status: &Value) -> Pod {
    let pod = json!({
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("of-{name}"),
            "labels": { keys::MODEL: "m", "pod-template-hash": "a" },
            "creationTimestamp": LONG_AGO,
        },
        "spec": { "nodeName": "n1", "containers": [{ "name": "model" }] },
        "status": status,
    });
    serde_json::from_value(pod).unwrap()
}

/// The node is about to be taken away.
fn goes(scene: &Scene) {
    let node = json!({
        "metadata": { "name": "n1" },
        "spec": { "taints": [{ "key": keys::SPOT_TERMINATING, "effect": "NoSchedule" }] },
    });
    scene.world.saw_node(&serde_json::from_value::<Node>(node).unwrap());
}

#[tokio::test]
async fn what_is_refused_of_other_pods_keeps_no_engine_where_it_is() {
    let scene = engines(&["m-1"]);
    scene.world.saw_pod(pod("m-0", &json!({ "phase": "Failed" })));
    scene.server.rule(|call| {
        call.writes("pods/m-0").then(|| refusal(403, "Forbidden", "it is to be looked at"))
    });
    scene.pass().await;
    assert_eq!(scene.server.writes("pods/m-0"), 1);
    goes(&scene);
    scene.pass().await;
    assert_eq!(scene.server.writes("pods/m-1"), 1, "nobody heeds the notice");
}

#[tokio::test]
async fn an_engine_that_may_not_be_set_apart_keeps_no_other_where_it_is() {
    let scene = engines(&["m-1", "m-2"]);
    scene.pass().await;
    scene.server.rule(|call| call.writes("pods/m-1").then(|| refusal(403, "Forbidden", "not it")));
    goes(&scene);
    scene.pass().await;
    assert_eq!(["pods/m-1", "pods/m-2"].map(|pod| scene.server.writes(pod)), [1, 1]);
}

#[tokio::test]
async fn engines_move_although_their_model_may_not_be_held() {
    let scene = engines(&["m-1"]);
    scene.pass().await;
    let mut unheld = model("m", &spec(1));
    (unheld.metadata.finalizers, unheld.metadata.resource_version) = (None, Some("99".to_owned()));
    scene.world.wrote_model(unheld);
    scene
        .server
        .rule(|call| call.writes("models/m").then(|| refusal(403, "Forbidden", "no right")));
    goes(&scene);
    scene.pass().await;
    assert_eq!(scene.server.writes("pods/m-1"), 1);
}
