//! What becomes of pods on nodes that go, as tables.

use std::collections::BTreeSet;

use flexinfer_crds::keys;
use serde_json::{Value, json};

use super::*;
use crate::planning::placing::Offer;

/// A node that is to be taken away, with these taints.
fn going(name: &str, taints: &Value) -> Offer {
    let annotations = json!({ keys::SPOT_TERMINATING: "true" });
    let node = json!({
        "metadata": { "name": name, "annotations": annotations }, "spec": { "taints": taints },
    });
    Offer::of(&serde_json::from_value(node).unwrap())
}

fn staying(name: &str) -> Offer {
    Offer { name: name.to_owned(), ..Offer::default() }
}

fn taint() -> Value {
    json!([{ "key": keys::SPOT_TERMINATING, "value": "true", "effect": "NoSchedule" }])
}

fn nodes() -> [Offer; 2] {
    [going("doomed", &taint()), staying("safe")]
}

fn pod(name: &str, node: &str, ready: bool) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "uid": format!("u-{name}") },
        "spec": { "nodeName": node, "containers": [] },
        "status": { "phase": "Running", "conditions": [
            { "type": "Ready", "status": if ready { "True" } else { "False" } },
        ] },
    });
    serde_json::from_value(pod).unwrap()
}

fn apart(mut pod: Pod) -> Pod {
    pod.metadata.annotations = Some([(keys::SET_APART.to_owned(), "true".to_owned())].into());
    pod
}

fn owner(cluster: Cluster<'_>, replicas: u32) -> Owner<'_> {
    let until = Until::Served;
    let (full, revision, ends_first) = (false, None, true);
    Owner { cluster, replicas, draining: false, until, full, revision, ends_first }
}

/// Which pods are set apart, and which are told to end.
fn moved(nodes: &[Offer], pods: &[Pod], change: fn(&mut Owner<'_>)) -> (Vec<String>, Vec<String>) {
    let (classes, replicas) = (BTreeSet::new(), 1);
    let cluster = Cluster { nodes, runtime_classes: &classes, storage_classes: None };
    let mut owner = owner(cluster, replicas);
    change(&mut owner);
    let names = |pods: Vec<PodId>| pods.into_iter().map(|pod| pod.name).collect();
    let Moving { apart, back: _, over, at_once } = moving(pods, owner);
    assert!(at_once.is_empty() || owner.until == Until::Gone, "{at_once:?}");
    (names(apart), names([over, at_once].concat()))
}

/// Which pods are given back, and which are told to end, where all nodes stay.
fn undone(pods: &[Pod], replicas: u32) -> (Vec<String>, Vec<String>) {
    let (classes, nodes) = (BTreeSet::new(), [staying("doomed"), staying("safe")]);
    let cluster = Cluster { nodes: &nodes, runtime_classes: &classes, storage_classes: None };
    undone_by(pods, owner(cluster, replicas))
}

fn undone_by(pods: &[Pod], owner: Owner<'_>) -> (Vec<String>, Vec<String>) {
    let names = |pods: Vec<PodId>| pods.into_iter().map(|pod| pod.name).collect();
    let Moving { apart, back, over, at_once } = moving(pods, owner);
    assert_eq!([apart, at_once].concat(), []);
    (names(back), names(over))
}

/// The pod as made from this template.
fn made_from(template: &str, mut pod: Pod) -> Pod {
    let of_template = [("pod-template-hash".to_owned(), template.to_owned())];
    pod.metadata.labels = Some(of_template.into());
    pod
}

/// A pod of this template that was set apart.
fn was_apart(template: &str, mut pod: Pod) -> Pod {
    pod.metadata.annotations = Some([(keys::SET_APART.to_owned(), template.to_owned())].into());
    pod
}

/// A pod of this template that finds no place.
fn placeless(name: &str, template: &str) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "uid": format!("u-{name}") },
        "spec": { "containers": [] },
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
        ] },
    });
    made_from(template, serde_json::from_value(pod).unwrap())
}

fn as_is(_: &mut Owner<'_>) {}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_engine_whose_node_goes_serves_on_until_another_does() {
    let old = pod("old", "doomed", true);
    assert_eq!(moved(&nodes(), std::slice::from_ref(&old), as_is), (named(&["old"]), named(&[])));
    let old = apart(old);
    let alone = moved(&nodes(), std::slice::from_ref(&old), as_is);
    assert_eq!(alone, (named(&[]), named(&[])), "once");
    let with = |new| moved(&nodes(), &[old.clone(), new], as_is);
    assert_eq!(with(pod("new", "safe", false)), (named(&[]), named(&[])), "it loads");
    assert_eq!(with(pod("new", "safe", true)), (named(&[]), named(&["old"])));
    let mut ends = old.clone();
    ends.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let ending = moved(&nodes(), &[ends, pod("new", "safe", true)], as_is);
    assert_eq!(ending, (named(&[]), named(&[])), "it is told once");
}

#[test]
fn of_several_as_many_end_as_others_serve() {
    let two = |owner: &mut Owner<'_>| owner.replicas = 2;
    let old = ["a", "b"].map(|name| apart(pod(name, "doomed", true)));
    let [a, b] = old;
    let first = moved(&nodes(), &[a.clone(), b.clone(), pod("c", "safe", true)], two);
    assert_eq!(first, (named(&[]), named(&["a"])));
    let both = [a, b, pod("c", "safe", true), pod("d", "safe", true)];
    assert_eq!(moved(&nodes(), &both, two), (named(&[]), named(&["a", "b"])));
    let one_there = [pod("a", "doomed", true), pod("c", "safe", true)];
    assert_eq!(moved(&nodes(), &one_there, two), (named(&["a"]), named(&[])));
}

#[test]
fn what_does_not_serve_ends_once_another_has_a_node() {
    let loads = pod("old", "doomed", false);
    assert_eq!(moved(&nodes(), std::slice::from_ref(&loads), as_is), (named(&["old"]), named(&[])));
    let broken = apart(loads);
    let nothing = (named(&[]), named(&[]));
    assert_eq!(moved(&nodes(), std::slice::from_ref(&broken), as_is), nothing, "it may be back");
    let with = |new| moved(&nodes(), &[broken.clone(), new], as_is);
    assert_eq!(with(placeless("new", "a")), nothing, "there is no other");
    assert_eq!(with(pod("new", "safe", false)), (named(&[]), named(&["old"])), "it loads");

    let two = |owner: &mut Owner<'_>| owner.replicas = 2;
    let serves = pod("other", "safe", true);
    let waits = [broken.clone(), serves.clone(), placeless("new", "a")];
    assert_eq!(moved(&nodes(), &waits, two), nothing);
    let load = [broken, serves, pod("new", "safe", false)];
    assert_eq!(moved(&nodes(), &load, two), (named(&[]), named(&["old"])));
}

#[test]
fn a_claim_that_one_node_can_use_is_let_go_once_another_engine_has_a_node() {
    let placed = |owner: &mut Owner<'_>| owner.until = Until::Placed;
    let old = pod("old", "doomed", true);
    let set_apart = (named(&["old"]), named(&[]));
    assert_eq!(moved(&nodes(), std::slice::from_ref(&old), placed), set_apart);
    let old = apart(old);
    let with = |new| moved(&nodes(), &[old.clone(), new], placed);
    let nothing = (named(&[]), named(&[]));
    assert_eq!(with(placeless("new", "a")), nothing, "its volume may be of this machine");
    assert_eq!(with(pod("new", "safe", false)), (named(&[]), named(&["old"])));

    let two = |owner: &mut Owner<'_>| (owner.until, owner.replicas) = (Until::Placed, 2);
    let older = apart(pod("older", "doomed", true));
    let one_serves = [old.clone(), older, pod("new", "safe", true)];
    assert_eq!(moved(&nodes(), &one_serves, two), (named(&[]), named(&["old"])));
    let silent = apart(pod("silent", "doomed", false));
    let one_is_silent = [old.clone(), silent, pod("new", "safe", true)];
    assert_eq!(moved(&nodes(), &one_is_silent, two), (named(&[]), named(&["silent"])));
    let asleep = |owner: &mut Owner<'_>| (owner.until, owner.replicas) = (Until::Placed, 0);
    assert_eq!(moved(&nodes(), &[old], asleep), (named(&[]), named(&["old"])));
}

#[test]
fn where_no_other_finds_a_node_before_an_engine_ends_at_once() {
    let gone = |owner: &mut Owner<'_>| owner.until = Until::Gone;
    let at_once = moved(&nodes(), &[pod("old", "doomed", true)], gone);
    assert_eq!(at_once, (named(&[]), named(&["old"])));
}

#[test]
fn nothing_is_moved_to_where_it_may_come_back_to() {
    let old = [pod("old", "doomed", true)];
    let nothing = (named(&[]), named(&[]));
    assert_eq!(moved(&[going("doomed", &json!([]))], &old, as_is), nothing, "it is not closed");
    let preferred = json!([{ "key": "a", "effect": "PreferNoSchedule" }]);
    assert_eq!(moved(&[going("doomed", &preferred)], &old, as_is), nothing);
    let tolerating = |toleration: Value| {
        let mut old = old[0].clone();
        old.spec.as_mut().unwrap().tolerations =
            Some(serde_json::from_value(json!([toleration])).unwrap());
        moved(&nodes(), &[old], as_is)
    };
    for all in [
        json!({ "operator": "Exists" }),
        json!({ "key": keys::SPOT_TERMINATING, "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": keys::SPOT_TERMINATING, "value": "true" }),
    ] {
        assert_eq!(tolerating(all), nothing);
    }
    let set_apart = (named(&["old"]), named(&[]));
    for other in [
        json!({ "key": keys::SPOT_TERMINATING, "operator": "Exists", "effect": "NoExecute" }),
        json!({ "key": keys::SPOT_TERMINATING, "value": "false" }),
        json!({ "key": "dedicated", "operator": "Exists" }),
    ] {
        assert_eq!(tolerating(other), set_apart);
    }
}

#[test]
fn nodes_that_stay_and_models_that_leave_are_left_alone() {
    let nothing = (named(&[]), named(&[]));
    assert_eq!(
        moved(&nodes(), &[pod("a", "safe", true), pod("b", "unknown", true)], as_is),
        nothing
    );
    let old = [pod("old", "doomed", true)];
    let draining = |owner: &mut Owner<'_>| owner.draining = true;
    assert_eq!(moved(&nodes(), &old, draining), nothing);
    let asleep = |owner: &mut Owner<'_>| owner.replicas = 0;
    assert_eq!(moved(&nodes(), &old, asleep), nothing, "its Deployment ends it");
    let set_apart = [apart(old[0].clone())];
    assert_eq!(moved(&nodes(), &set_apart, draining), nothing, "it finishes what it serves");
    assert_eq!(moved(&nodes(), &set_apart, asleep), (named(&[]), named(&["old"])));
    let cleared = [staying("doomed"), staying("safe")];
    let both = [set_apart[0].clone(), pod("new", "safe", true)];
    assert_eq!(moved(&cleared, &set_apart, as_is), nothing, "another is being started");
    assert_eq!(moved(&cleared, &both, as_is), (named(&[]), named(&["old"])));
}

#[test]
fn an_engine_whose_node_stays_after_all_is_given_back() {
    let old = was_apart("a", pod("old", "doomed", true));
    let given_back = (named(&["old"]), named(&[]));
    assert_eq!(undone(&[old.clone(), placeless("new", "a")], 1), given_back);
    let loads = made_from("a", pod("new", "safe", false));
    assert_eq!(undone(&[old.clone(), loads.clone()], 1), given_back, "it need not be loaded");
    let serves = made_from("a", pod("new", "safe", true));
    assert_eq!(undone(&[old.clone(), serves.clone()], 1), (named(&[]), named(&["old"])));
    assert_eq!(undone(std::slice::from_ref(&old), 1), (named(&[]), named(&[])));
    let two = [old.clone(), was_apart("a", pod("older", "doomed", true)), loads.clone()];
    assert_eq!(undone(&two, 2), given_back, "for each that is ended instead");

    let mut gone = old.clone();
    gone.spec.as_mut().unwrap().node_name = Some("gone".to_owned());
    assert_eq!(undone(&[gone, loads.clone()], 1), (named(&[]), named(&[])));
    let (classes, nodes) = (BTreeSet::new(), nodes());
    let cluster = Cluster { nodes: &nodes, runtime_classes: &classes, storage_classes: None };
    assert_eq!(moving(&[old, loads], owner(cluster, 1)), Moving::default(), "its node goes");
}

#[test]
fn an_engine_set_apart_makes_room_for_what_its_model_became() {
    let old = was_apart("a", pod("old", "doomed", true));
    let ends = (named(&[]), named(&["old"]));
    assert_eq!(undone(&[old.clone(), placeless("new", "b")], 1), ends);
    let loads = made_from("b", pod("new", "safe", false));
    assert_eq!(undone(&[old.clone(), loads], 1), (named(&[]), named(&[])), "it serves meanwhile");
    let both = [old.clone(), placeless("new", "b"), placeless("newer", "a")];
    assert_eq!(undone(&both, 1), (named(&["old"]), named(&[])), "its ReplicaSet sees to it");
    let edited = [old, placeless("new", "b")];
    let (classes, staying) = (BTreeSet::new(), [staying("doomed"), staying("safe")]);
    let cluster = Cluster { nodes: &staying, runtime_classes: &classes, storage_classes: None };
    let surges = undone_by(&edited, Owner { ends_first: false, ..owner(cluster, 1) });
    assert_eq!(surges, (named(&[]), named(&[])), "its rollout would have kept it");
    assert_eq!(moved(&nodes(), &edited, as_is), (named(&[]), named(&[])));
}

/// The pod, set apart as one of this revision of its Deployment.
fn of_revision(revision: &str, pod: Pod) -> Pod {
    let mut pod = was_apart("a", pod);
    let noted = ("deployment.kubernetes.io/revision".to_owned(), revision.to_owned());
    pod.metadata.annotations.as_mut().unwrap().extend([noted]);
    pod
}

/// Which pods are given back, and which are told to end, where no further pod can be made.
fn crowded(nodes: &[Offer], pods: &[Pod], replicas: u32) -> (Vec<String>, Vec<String>) {
    let classes = BTreeSet::new();
    let cluster = Cluster { nodes, runtime_classes: &classes, storage_classes: None };
    undone_by(pods, Owner { full: true, revision: Some("7"), ..owner(cluster, replicas) })
}

#[test]
fn where_no_other_can_be_made_an_engine_goes_back_once_its_node_stays() {
    let old = of_revision("7", pod("old", "doomed", true));
    let stay = [staying("doomed"), staying("safe")];
    let back = (named(&["old"]), named(&[]));
    let nothing = (named(&[]), named(&[]));
    assert_eq!(crowded(&stay, std::slice::from_ref(&old), 1), back);
    assert_eq!(crowded(&nodes(), std::slice::from_ref(&old), 1), nothing, "it serves on");
    let unready = of_revision("7", pod("old", "doomed", false));
    assert_eq!(crowded(&stay, &[unready], 1), back, "its ReplicaSet has none");
    let unknown = was_apart("a", pod("old", "doomed", true));
    assert_eq!(crowded(&stay, &[unknown], 1), nothing, "nobody may take it up");
    let second = of_revision("7", pod("other", "doomed", true));
    let beside = [old.clone(), second, made_from("a", pod("new", "safe", true))];
    assert_eq!(crowded(&stay, &beside, 3), (named(&["old", "other"]), named(&[])));
    let (back, over) = crowded(&stay, &beside, 2);
    assert_eq!((back, over), (named(&["other"]), named(&["old"])), "as many as are missing");
}

#[test]
fn where_no_other_can_be_made_engines_make_room_one_by_one_for_what_their_model_became() {
    let old = ["a", "b"].map(|name| of_revision("6", pod(name, "doomed", true)));
    let first = (named(&[]), named(&["a"]));
    let nothing = (named(&[]), named(&[]));
    for nodes in [nodes(), [staying("doomed"), staying("safe")]] {
        assert_eq!(crowded(&nodes, &old, 2), first);
        let mut ends = old.clone();
        ends[0].metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert_eq!(crowded(&nodes, &ends, 2), nothing, "it has room to make yet");
        let loads = [old[1].clone(), made_from("b", pod("new", "safe", false))];
        assert_eq!(crowded(&nodes, &loads, 2), nothing, "the first of the new ones loads");
        let classes = BTreeSet::new();
        let cluster = Cluster { nodes: &nodes, runtime_classes: &classes, storage_classes: None };
        let full = Owner { full: true, revision: Some("7"), ..owner(cluster, 2) };
        let surges = undone_by(&old, Owner { ends_first: false, ..full });
        assert_eq!(surges, nothing, "what it was before would come into that room");
    }
}
