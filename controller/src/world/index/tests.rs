//! What is known of pods, whatever the order in which it is told.

use serde_json::json;

use super::*;

fn pod(uid: &str, version: &str) -> Pod {
    let metadata = json!({
        "name": "m-1", "namespace": "ai", "uid": uid, "resourceVersion": version,
        "labels": { keys::MODEL: "m" },
    });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

/// The uid and the version of the pod that is known.
fn known(index: &Index) -> Option<(String, String)> {
    let pod = index.objects.values().find_map(|objects| objects.pods.get("m-1"))?;
    Some((pod.uid()?, pod.resource_version()?))
}

fn is(uid: &str, version: &str) -> (String, String) {
    (uid.to_owned(), version.to_owned())
}

#[test]
fn an_older_sight_of_a_pod_does_not_come_over_the_answer_to_a_change() {
    let mut index = Index::default();
    index.see_pod(pod("a", "9"));
    index.changed_pod(pod("a", "11"));
    index.see_pod(pod("a", "10"));
    assert_eq!(known(&index), Some(is("a", "11")));
    index.see_pod(pod("b", "3"));
    assert_eq!(known(&index), Some(is("b", "3")), "another pod of that name");
}

#[test]
fn the_answer_to_a_change_of_a_pod_that_is_gone_brings_it_not_back() {
    let mut index = Index::default();
    index.see_pod(pod("a", "9"));
    index.forget_pod(pod("a", "12"));
    index.changed_pod(pod("a", "11"));
    assert_eq!(known(&index), None);
    index.see_pod(pod("b", "13"));
    index.changed_pod(pod("a", "11"));
    assert_eq!(known(&index), Some(is("b", "13")));
}
