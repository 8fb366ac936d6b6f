//! What is known of Models and their objects, whatever the order in which it is told.

mod homes;
mod jobs;

use flexinfer_core::planning::writing::Contest;
use flexinfer_crds::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::{Value, json};

use super::*;
use crate::world::objects::Kind;

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
    index.forget_pod(&pod("a", "12"));
    index.changed_pod(pod("a", "11"));
    assert_eq!(known(&index), None);
    index.see_pod(pod("b", "13"));
    index.changed_pod(pod("a", "11"));
    assert_eq!(known(&index), Some(is("b", "13")));
}

fn metadata(name: &str, uid: &str, version: &str) -> Value {
    json!({
        "name": name, "namespace": "ai", "uid": uid, "resourceVersion": version,
        "labels": { keys::MODEL: "m" },
    })
}

fn deployment(uid: &str, version: &str) -> Deployment {
    let template = json!({ "metadata": {}, "spec": { "containers": [] } });
    let spec = json!({ "selector": {}, "template": template });
    let metadata = metadata("m", uid, version);
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// The uid and the version of the Deployment that is known.
fn known_deployment(index: &Index) -> Option<(String, String)> {
    let deployment = index.objects.values().find_map(|objects| objects.deployment.as_ref())?;
    Some((deployment.uid()?, deployment.resource_version()?))
}

#[test]
fn the_answer_to_a_write_of_an_object_that_is_gone_brings_it_not_back() {
    let mut index = Index::default();
    index.see_deployment(deployment("a", "9"));
    index.forget_deployment(&deployment("a", "12"));
    index.wrote_deployment(deployment("a", "11"));
    assert_eq!(known_deployment(&index), None);
    // Made and deleted before the answer to its making came.
    index.see_deployment(deployment("b", "13"));
    index.forget_deployment(&deployment("b", "14"));
    index.wrote_deployment(deployment("b", "13"));
    assert_eq!(known_deployment(&index), None);
    index.wrote_deployment(deployment("c", "15"));
    assert_eq!(known_deployment(&index), Some(is("c", "15")), "of this nothing was seen yet");
}

#[test]
fn the_answer_to_a_write_of_an_object_comes_over_none_that_was_made_in_its_place() {
    let mut index = Index::default();
    index.see_deployment(deployment("a", "9"));
    index.see_deployment(deployment("b", "13"));
    index.wrote_deployment(deployment("a", "11"));
    assert_eq!(known_deployment(&index), Some(is("b", "13")));
    index.forget_deployment(&deployment("a", "12"));
    assert_eq!(known_deployment(&index), Some(is("b", "13")), "another one went");
}

#[test]
fn what_went_while_nobody_watched_is_not_brought_back_by_an_answer() {
    let mut index = Index::default();
    index.see_deployment(deployment("a", "9"));
    index.keep(Kind::Deployment, &BTreeSet::new());
    index.wrote_deployment(deployment("a", "10"));
    assert_eq!(known_deployment(&index), None);
    // It was made after the list, which the watch tells next.
    index.see_deployment(deployment("a", "10"));
    index.wrote_deployment(deployment("a", "11"));
    assert_eq!(known_deployment(&index), Some(is("a", "11")));
}

#[test]
fn the_answer_to_the_making_of_a_job_or_a_claim_that_is_gone_brings_it_not_back() {
    let mut index = Index::default();
    let job = |uid: &str| -> k8s_openapi::api::batch::v1::Job {
        serde_json::from_value(json!({ "metadata": metadata("m-fetch", uid, "5") })).unwrap()
    };
    let jobs =
        |index: &Index| index.objects.values().map(|objects| objects.jobs.len()).sum::<usize>();
    index.see_job(job("a"));
    index.forget_job(&job("a"));
    index.wrote_job(job("a"));
    assert_eq!(jobs(&index), 0);
    index.wrote_job(job("b"));
    index.forget_job(&job("a"));
    assert_eq!(jobs(&index), 1, "another one went");

    let claim = |uid: &str| -> PersistentVolumeClaim {
        serde_json::from_value(json!({ "metadata": metadata("m-cache", uid, "5") })).unwrap()
    };
    index.see_claim(claim("a"));
    index.forget_claim(&claim("a"));
    index.wrote_claim(claim("a"));
    assert!(index.claims.is_empty(), "nor is anything kept of a namespace without any");
    index.wrote_claim(claim("b"));
    index.forget_claim(&claim("a"));
    assert_eq!(index.claims["ai"].len(), 1, "another one went");
}

fn model(uid: &str, version: &str, alias: &str) -> Model {
    let model = json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2", "kind": "Model",
        "metadata": { "name": "m", "namespace": "ai", "uid": uid, "resourceVersion": version, "generation": 1 },
        "spec": { "backend": "simulator", "litellm": { "aliases": [alias] } },
    });
    serde_json::from_value(model).unwrap()
}

#[test]
fn the_answer_to_a_write_of_a_model_that_is_gone_brings_it_not_back() {
    let mut index = Index::default();
    let (now, id) = (Moment::ORIGIN, ModelId::new("ai", "m"));
    index.see_model(model("a", "9", "chat"), now);
    index.wrote_model(model("a", "10", "chat"), now);
    index.forget_model(&id);
    index.wrote_model(model("a", "11", "chat"), now);
    assert_eq!((index.models.len(), index.groups.len()), (0, 0), "a ghost");
    index.see_model(model("b", "12", "talk"), now);
    index.wrote_model(model("a", "11", "chat"), now);
    assert_eq!(index.models[&id].model.metadata.uid.as_deref(), Some("b"));
}

#[test]
fn nothing_that_was_remembered_of_a_model_is_said_of_another_of_its_name() {
    let mut index = Index::default();
    let (now, id) = (Moment::ORIGIN, ModelId::new("ai", "m"));
    index.see_model(model("a", "9", "chat"), now);
    let first = model("a", "9", "chat");
    let note = |index: &mut Index| {
        index.remember(&first, Record { draining: Some(now), ..Record::default() });
        index.note_dispute(&first, Dispute::new("kyverno wrote .spec", now));
        index.note_contest(&first, (Kind::Deployment, "m"), Contest::default(), now);
    };
    note(&mut index);
    assert!(index.models[&id].dispute.is_some());
    // Deleted and made anew while nobody watched, and before a pass over the first had ended.
    index.see_model(model("b", "12", "chat"), now);
    note(&mut index);
    let seen = &index.models[&id];
    assert_eq!((&seen.record, &seen.dispute), (&Record::default(), &None));
    assert!(seen.contests.is_empty());
}

/// The same with another value of the label by which it is found, or without one.
fn labelled(mut pod: Pod, label: Option<&str>) -> Pod {
    let labels = label.map(|label| (keys::MODEL.to_owned(), label.to_owned()));
    pod.metadata.labels = Some(labels.into_iter().collect());
    pod
}

#[test]
fn a_pod_that_loses_the_label_of_its_model_is_no_more_the_models() {
    for label in [None, Some("debugging")] {
        let mut index = Index::default();
        index.see_model(model("a", "9", "chat"), Moment::ORIGIN);
        index.see_pod(pod("a", "9"));
        let woken = index.see_pod(labelled(pod("a", "10"), label));
        assert_eq!(woken.len(), 1, "the group is to be looked at: {label:?}");
        let known = |index: &Index| {
            index
                .objects
                .get(&Owner::model(&ModelId::new("ai", "m")))
                .map_or(0, |all| all.pods.len())
        };
        assert_eq!(known(&index), 0, "{label:?}");
        index.forget_pod(&labelled(pod("a", "11"), label));
        assert!(index.objects.is_empty(), "nothing is kept of it: {label:?}");
    }
}

#[test]
fn what_was_made_for_a_model_is_found_whatever_its_labels_are() {
    let mut index = Index::default();
    let owned = |version: &str, label: &str| {
        let mut deployment = deployment("a", version);
        deployment.metadata.labels = Some([(keys::MODEL.to_owned(), label.to_owned())].into());
        let owner = json!([{
            "apiVersion": "inference.flexinfer.ai/v1alpha2", "kind": "Model", "name": "m",
            "uid": "u", "controller": true,
        }]);
        deployment.metadata.owner_references = Some(serde_json::from_value(owner).unwrap());
        deployment
    };
    let of_model = |index: &Index| {
        let objects = index.objects.get(&Owner::model(&ModelId::new("ai", "m")))?;
        objects.deployment.as_ref()?.resource_version()
    };
    index.see_deployment(owned("9", "m"));
    index.see_deployment(owned("10", "another"));
    assert_eq!(of_model(&index).as_deref(), Some("10"));
    assert_eq!(index.objects.len(), 1);
    index.forget_deployment(&owned("11", "another"));
    assert!(index.objects.is_empty());
}
