//! Models whose nodes are about to be taken away.

use super::*;
use crate::planning::objects::{given_back, set_apart};

/// A node that is about to be taken away, and takes no other pods.
fn going(name: &str) -> Offer {
    let node = json!({
        "metadata": { "name": name },
        "spec": { "taints": [{ "key": keys::SPOT_TERMINATING, "effect": "NoSchedule" }] },
    });
    Offer::of(&serde_json::from_value(node).unwrap())
}

fn engine() -> Leftover {
    Leftover { name: "m-1".to_owned(), uid: "p1".to_owned() }
}

#[test]
fn an_engine_is_set_apart_once_its_node_goes_and_ends_once_another_serves() {
    let mut model = serving(json!({ "backend": "simulator" }));
    assert_eq!(planned(&model).moving, Moving::default());
    model.nodes = vec![going("n1")];
    assert_eq!(planned(&model).moving, Moving { apart: vec![engine()], ..Moving::default() });

    let labels = [("pod-template-hash".to_owned(), "a".to_owned())];
    model.pods[0].metadata.labels = Some(labels.into());
    let patch = set_apart(&model.model, &model.pods[0]);
    assert_eq!(patch["metadata"]["uid"], "p1");
    assert_eq!(patch["metadata"]["labels"], json!({ "pod-template-hash": null }));
    assert_eq!(patch["metadata"]["ownerReferences"][0]["kind"], "Model");
    let annotations = serde_json::from_value(patch["metadata"]["annotations"].clone()).unwrap();
    model.pods[0].metadata.annotations = annotations;
    model.pods[0].metadata.labels = None;
    assert_eq!(
        given_back(&model.pods[0])["metadata"],
        json!({
            "uid": "p1",
            "labels": { "pod-template-hash": "a" },
            "annotations": { keys::SET_APART: null },
            "ownerReferences": null,
        })
    );
    let alone = planned(&model);
    assert_eq!((alone.moving, alone.status.phase), (Moving::default(), Some(Phase::Ready)));

    model.pods.push(serving_on("n2"));
    assert_eq!(planned(&model).moving, Moving { over: vec![engine()], ..Moving::default() });
}

#[test]
fn what_holds_up_the_other_engine_is_told() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.nodes = vec![going("n1")];
    model.pods[0].metadata.annotations =
        Some([(keys::SET_APART.to_owned(), "true".to_owned())].into());
    let waits = json!({
        "metadata": { "name": "m-2", "uid": "p2" },
        "spec": { "containers": [] },
        "status": { "phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available",
        }] },
    });
    model.pods.push(serde_json::from_value(waits).unwrap());
    let message = planned(&model).status.message.unwrap_or_default();
    assert!(message.contains("0/1 nodes are available"), "{message}");
}

#[test]
fn a_claim_says_when_its_engine_ends() {
    let mut model = serving_with_another_source();
    model.model.spec.source = Some("HF://org/model".to_owned());
    model.nodes = vec![going("n1")];
    let mut moving_on = |mode: &str| {
        let claim = Arc::make_mut(model.claims.values_mut().next().unwrap());
        claim.spec.as_mut().unwrap().access_modes = Some(vec![mode.to_owned()]);
        planned(&model).moving
    };
    let apart = Moving { apart: vec![engine()], ..Moving::default() };
    let at_once = Moving { at_once: vec![engine()], ..Moving::default() };
    assert_eq!(moving_on("ReadWriteMany"), apart);
    assert_eq!(moving_on("ReadWriteOnce"), apart);
    assert_eq!(moving_on("ReadWriteOncePod"), at_once);

    model.model.spec.serverless.as_mut().unwrap().max_replicas = Some(2);
    model.effective.as_mut().unwrap().max_replicas = 2;
    let claim = Arc::make_mut(model.claims.values_mut().next().unwrap());
    claim.spec.as_mut().unwrap().access_modes = Some(vec!["ReadWriteOnce".to_owned()]);
    assert_eq!(planned(&model).moving, at_once, "its engines have to be on one node");
    model.pods[0].metadata.annotations =
        Some([(keys::SET_APART.to_owned(), "true".to_owned())].into());
    assert_eq!(planned(&model).moving, Moving::default());
}
