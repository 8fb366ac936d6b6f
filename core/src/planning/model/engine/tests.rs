//! What pods say, as tables.

use flexinfer_crds::conditions::LoadHindrance;
use flexinfer_crds::keys;
use serde_json::{Value, json};

use super::*;

fn deployment(replicas: i32, generation: i64, seen: i64, left: i32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": "m", "generation": generation },
        "spec": { "replicas": replicas, "selector": {}, "template": {} },
        "status": { "observedGeneration": seen, "replicas": left },
    }))
    .unwrap()
}

fn pod(status: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": "m-1", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "containers": [{ "name": "model" }], "nodeName": "node-1" },
        "status": status,
    }))
    .unwrap()
}

fn container(state: &Value) -> Value {
    json!({ "containerStatuses": [{
        "name": "model", "image": "vllm:1", "imageID": "", "ready": false, "restartCount": 4,
        "state": state,
        "lastState": { "terminated": {
            "exitCode": 1, "message": "loading\nno such file: /models/x\n",
        } },
    }] })
}

fn hindered_by(status: &Value) -> Option<(LoadHindrance, String)> {
    let engine = Engine::of(Some(&deployment(1, 2, 2, 1)), &[pod(status)]);
    engine.hindrance.map(|hindrance| (hindrance.reason, hindrance.message))
}

#[test]
fn a_ready_pod_serves_since_it_became_ready() {
    let ready = json!({ "conditions": [{
        "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z",
    }] });
    let engine = Engine::of(Some(&deployment(1, 2, 2, 1)), &[pod(&ready)]);
    assert_eq!((engine.asked, engine.ready, engine.present), (1, 1, true));
    let took = engine.ready_since.unwrap().since(engine.made.unwrap());
    assert_eq!((took.as_secs(), engine.node.as_deref()), (30, Some("node-1")));
}

#[test]
fn a_pod_that_ends_serves_no_more_and_is_still_there() {
    let mut ending = pod(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    ending.metadata.deletion_timestamp = ending.metadata.creation_timestamp.clone();
    let engine = Engine::of(Some(&deployment(0, 3, 3, 0)), &[ending]);
    assert_eq!((engine.asked, engine.ready, engine.present), (0, 0, true));
}

#[test]
fn an_engine_is_where_its_staying_pod_is_not_where_one_ends_for_ever() {
    let mut lost = pod(&json!({}));
    lost.metadata.deletion_timestamp = lost.metadata.creation_timestamp.clone();
    let mut next = pod(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    next.spec.as_mut().unwrap().node_name = Some("node-2".to_owned());
    let engine = Engine::of(Some(&deployment(1, 2, 2, 1)), &[lost, next]);
    assert_eq!(engine.node.as_deref(), Some("node-2"));
}

#[test]
fn a_pod_that_ended_is_gone() {
    let engine = Engine::of(Some(&deployment(0, 3, 3, 0)), &[pod(&json!({ "phase": "Failed" }))]);
    assert!(!engine.present);
}

#[test]
fn a_change_that_nobody_acted_on_may_still_leave_pods() {
    assert!(Engine::of(Some(&deployment(0, 3, 2, 0)), &[]).present, "not seen yet");
    assert!(Engine::of(Some(&deployment(0, 3, 3, 1)), &[]).present, "one is left");
    assert!(!Engine::of(Some(&deployment(0, 3, 3, 0)), &[]).present);
    assert!(!Engine::of(Some(&deployment(0, 1, 0, 0)), &[]).present, "just made, with none");
    assert!(!Engine::of(None, &[]).present);
}

#[test]
fn an_image_that_cannot_be_pulled_is_named() {
    let waiting = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "not found" } });
    let (reason, message) = hindered_by(&container(&waiting)).unwrap();
    assert_eq!(reason, LoadHindrance::ImagePullFailed);
    assert_eq!(message, "image vllm:1 cannot be pulled: not found");
}

#[test]
fn a_crash_loop_tells_the_engines_last_words() {
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let (reason, message) = hindered_by(&container(&waiting)).unwrap();
    assert_eq!(reason, LoadHindrance::CrashLoop);
    let wanted =
        "container model ended 5 times; at last it ended with status 1: no such file: /models/x";
    assert_eq!(message, wanted);
}

#[test]
fn a_failed_init_container_is_named() {
    let (reason, message) = hindered_by(&json!({ "initContainerStatuses": [{
        "name": "flash", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
    }] }))
    .unwrap();
    assert_eq!(reason, LoadHindrance::InitContainerFailed);
    assert_eq!(message, "init container flash ran out of its memory limit (status 137)");
}

/// Statuses of init containers `fetch` and `beside`, of which the second is a sidecar.
fn hindered_by_first(fetch: &Value, beside: &Value) -> Option<(LoadHindrance, String)> {
    let status = |name: &str, state: &Value| {
        json!({
            "name": name, "image": "", "imageID": "", "ready": false, "restartCount": 5, "state": state,
            "lastState": { "terminated": { "exitCode": 3, "message": "no such repository" } },
        })
    };
    let mut pod = pod(&json!({
        "initContainerStatuses": [status("fetch", fetch), status("beside", beside)],
        "containerStatuses": [{
            "name": "model", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "PodInitializing" } },
        }],
    }));
    let first = json!([{ "name": "fetch" }, { "name": "beside", "restartPolicy": "Always" }]);
    pod.spec.as_mut().unwrap().init_containers = serde_json::from_value(first).unwrap();
    let engine = Engine::of(Some(&deployment(1, 2, 2, 1)), &[pod]);
    engine.hindrance.map(|hindrance| (hindrance.reason, hindrance.message))
}

#[test]
fn queue_12_an_init_container_that_crashes_is_named_with_its_status_and_a_sidecar_is_not_misread() {
    let (crashes, runs) =
        (json!({ "waiting": { "reason": "CrashLoopBackOff" } }), json!({ "running": {} }));
    let (reason, message) = hindered_by_first(&crashes, &runs).unwrap();
    assert_eq!(reason, LoadHindrance::InitContainerFailed);
    let wanted =
        "init container fetch ended 6 times; at last it ended with status 3: no such repository";
    assert_eq!(message, wanted);
    let done = json!({ "terminated": { "exitCode": 0 } });
    assert_eq!(hindered_by_first(&done, &runs), None);
    // One that ends beside the others is started again; that is no reason to give up.
    let ended = json!({ "terminated": { "exitCode": 143 } });
    assert_eq!(hindered_by_first(&done, &ended), None);
    let (reason, message) = hindered_by_first(&done, &crashes).unwrap();
    assert_eq!(reason, LoadHindrance::CrashLoop);
    assert!(message.starts_with("container beside ended 6 times"), "{message}");
}

#[test]
fn a_pod_that_no_node_takes_is_waited_for() {
    let (reason, message) = hindered_by(&json!({ "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    }] }))
    .unwrap();
    assert_eq!(reason, LoadHindrance::Unschedulable);
    assert!(message.contains("Insufficient nvidia.com/gpu"), "{message}");
}

#[test]
fn a_quota_that_allows_no_pod_is_seen_on_the_deployment() {
    let mut full = deployment(1, 2, 2, 0);
    full.status.as_mut().unwrap().conditions = serde_json::from_value(json!([{
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "pods \"m-1\" is forbidden: exceeded quota: small",
    }]))
    .unwrap();
    let hindrance = Engine::of(Some(&full), &[]).hindrance.unwrap();
    assert_eq!(hindrance.reason, LoadHindrance::QuotaExceeded);
    assert!(hindrance.terminal());
}

#[test]
fn where_one_replica_serves_nothing_holds_up_the_load() {
    let ready = pod(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let engine = Engine::of(Some(&deployment(2, 2, 2, 2)), &[ready, pod(&container(&waiting))]);
    assert_eq!(engine.hindrance, None);
}

#[test]
fn how_far_a_load_is_follows_the_containers() {
    let substage =
        |status: &Value| Engine::of(Some(&deployment(1, 2, 2, 1)), &[pod(status)]).substage;
    let mut creating = container(&json!({ "waiting": { "reason": "ContainerCreating" } }));
    creating["hostIP"] = json!("10.0.0.1");
    assert_eq!(substage(&creating), Some(LoadingSubstage::ImagePulling));
    let running = container(&json!({ "running": {} }));
    assert_eq!(substage(&running), Some(LoadingSubstage::LoadingWeights));
}

#[test]
fn k8s_16_what_holds_up_a_further_replica_is_seen_beside_one_that_serves() {
    let ready = pod(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    let stuck = pod(&json!({ "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room",
    }] }));
    let pods = [ready, stuck];
    let engine = Engine::of(Some(&deployment(2, 2, 2, 2)), &pods);
    assert_eq!(engine.hindrance, None, "it serves");
    assert_eq!(engine.lacking.map(|found| found.reason), Some(LoadHindrance::Unschedulable));
    let fewer = Engine::of(Some(&deployment(1, 3, 3, 2)), &pods);
    assert_eq!(fewer.lacking, None, "nobody wants the other any more");
}

#[test]
fn an_engine_that_is_set_apart_serves_and_is_counted_apart() {
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    let mut old = pod(&ready);
    old.metadata.annotations = Some([(keys::SET_APART.to_owned(), "a".to_owned())].into());
    let engine = Engine::of(Some(&deployment(2, 2, 2, 1)), &[old, pod(&ready)]);
    assert_eq!((engine.ready, engine.apart), (2, 1));
}
