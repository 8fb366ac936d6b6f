//! GPU-12: memory that pods were promised.

use super::*;

/// What a pod on `node-a` takes, `ready` at this time or not yet.
fn reservation(memory: &str, ready: Option<&str>, phase: &str) -> Option<(String, Reservation)> {
    let conditions = ready
        .map(|time| json!([{ "type": "Ready", "status": "True", "lastTransitionTime": time }]));
    let change = json!({
        "spec": { "nodeName": "node-a" },
        "status": { "phase": phase, "conditions": conditions.unwrap_or(json!([])) },
    });
    Reservation::of(&object(1, memory, &change))
}

fn promised(memory: &str) -> Reservation {
    reservation(memory, None, "Pending").unwrap().1
}

const MEASURED: (&str, &str) = (keys::GPU_MEASURED_AT, "2026-01-02T03:04:05Z");

fn holds(memory: &str, node: &Node, reservations: &[Reservation]) -> bool {
    refusal(&pod(1, memory), node, reservations).is_none()
}

#[test]
fn gpu_12_a_pod_that_loads_still_counts_against_its_node() {
    let node = node(&[(keys::GPU_FREE_MEMORY, "24000"), MEASURED]);
    assert!(holds("20000", &node, &[]));
    assert!(!holds("20000", &node, &[promised("20000")]));
    assert!(holds("4000", &node, &[promised("20000")]));
}

#[test]
fn gpu_12_a_pod_that_is_measured_counts_no_more() {
    let node = node(&[(keys::GPU_FREE_MEMORY, "24000"), MEASURED]);
    let ready = |time| reservation("20000", Some(time), "Running").unwrap().1;
    assert!(holds("20000", &node, &[ready("2026-01-02T03:04:04Z")]));
    assert!(
        !holds("20000", &node, &[ready("2026-01-02T03:04:05Z")]),
        "the same second proves nothing"
    );
    assert!(!holds("20000", &node, &[ready("2026-01-02T03:05:00Z")]));
}

#[test]
fn gpu_12_an_agent_that_tells_no_time_is_believed_about_pods_that_are_ready() {
    let node = node(&[(keys::GPU_FREE_MEMORY, "24000")]);
    let ready = reservation("20000", Some("2026-01-02T03:05:00Z"), "Running").unwrap().1;
    assert!(holds("20000", &node, &[ready]));
    assert!(!holds("20000", &node, &[promised("20000")]));
}

#[test]
fn gpu_12_pods_that_ended_or_have_no_node_hold_nothing() {
    assert_eq!(reservation("1000", None, "Succeeded"), None);
    assert_eq!(reservation("1000", None, "Failed"), None);
    assert_eq!(Reservation::of(&object(1, "1000", &json!({}))), None);
    assert_eq!(reservation("1000", None, "Pending").unwrap().0, "node-a");
}

#[test]
fn gpu_12_what_nobody_knows_is_all_of_a_gpu() {
    let unknown = promised("0");
    assert_eq!(unknown.memory, None);
    let each = node(&[(keys::GPU_FREE_MEMORY_EACH, "24000,10000"), MEASURED]);
    assert!(holds("10000", &each, std::slice::from_ref(&unknown)), "the other GPU is free");
    assert!(!holds("10001", &each, std::slice::from_ref(&unknown)));
    let sum = node(&[(keys::GPU_FREE_MEMORY, "40000"), MEASURED]);
    assert!(holds("10000", &sum, std::slice::from_ref(&unknown)), "it took 24576 of 40000");
    assert!(!holds("20000", &sum, &[unknown]));
}

#[test]
fn promises_are_taken_from_the_freest_gpus() {
    let node =
        node(&[(keys::GPU_FREE_MEMORY_EACH, "8000,20000,23000"), MEASURED, (keys::GPU_COUNT, "3")]);
    let room = Room::of(&node, &[promised("20000")]);
    assert_eq!(room, Room::Each(vec![20000, 8000, 3000]));
    let room = Room::of(&node, &[promised("20000"), promised("20000"), promised("90000")]);
    assert_eq!(room, Room::Each(vec![3000, 0, 0]));
}
