//! Models whose nodes are about to be taken away.

use super::*;
use crate::planning::objects::{given_back, set_apart};

const REVISION: &str = "deployment.kubernetes.io/revision";

/// A node that is about to be taken away, and takes no other pods.
fn going(name: &str) -> Offer {
    let node = json!({
        "metadata": { "name": name },
        "spec": { "taints": [{ "key": keys::SPOT_TERMINATING, "effect": "NoSchedule" }] },
    });
    Offer::of(&serde_json::from_value(node).unwrap())
}

fn engine() -> PodId {
    PodId { name: "m-1".to_owned(), uid: "p1".to_owned() }
}

#[test]
fn an_engine_is_set_apart_once_its_node_goes_and_ends_once_another_serves() {
    let mut model = serving(json!({ "backend": "simulator" }));
    assert_eq!(planned(&model).moving, Moving::default());
    model.nodes = vec![going("n1")];
    assert_eq!(planned(&model).moving, Moving { apart: vec![engine()], ..Moving::default() });

    let labels = [("pod-template-hash".to_owned(), "a".to_owned())];
    model.pods[0].metadata.labels = Some(labels.into());
    let patch = set_apart(&model.model, &model.pods[0], model.deployment.as_ref());
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
            "annotations": { keys::SET_APART: null, REVISION: null },
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
    let Some(CacheStep::Make(mut brought)) = planned(&model).caching else { panic!("a Job") };
    brought.status = Some(ended_as("Complete"));
    model.jobs.push(*brought);
    model.nodes = vec![going("n1")];
    let mut moving_on = |mode: &str| {
        can(model.claims.values_mut().next().unwrap(), mode);
        let wanted = planned(&model);
        assert!(matches!(wanted.engine, WantedEngine::Deployment(_)), "{:?}", wanted.engine);
        wanted.moving
    };
    let apart = Moving { apart: vec![engine()], ..Moving::default() };
    let at_once = Moving { at_once: vec![engine()], ..Moving::default() };
    assert_eq!(moving_on("ReadWriteMany"), apart);
    assert_eq!(moving_on("ReadWriteOnce"), apart);
    assert_eq!(moving_on("ReadWriteOncePod"), at_once);

    model.model.spec.serverless.as_mut().unwrap().max_replicas = Some(2);
    model.effective.as_mut().unwrap().max_replicas = 2;
    can(model.claims.values_mut().next().unwrap(), "ReadWriteOnce");
    assert_eq!(planned(&model).moving, at_once, "its engines have to be on one node");
    model.pods[0].metadata.annotations =
        Some([(keys::SET_APART.to_owned(), "true".to_owned())].into());
    assert_eq!(planned(&model).moving, Moving::default());
}

#[test]
fn a_quota_that_has_no_room_for_the_other_engine_is_told_and_the_old_one_goes_at_the_next_edit() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.nodes = vec![going("n1")];
    let strategy = &mut model.deployment.as_mut().unwrap().spec.strategy;
    *strategy = Some(serde_json::from_value(json!({ "type": "Recreate" })).unwrap());
    let mut of_revision = |revision: &str, replicas: i32, said: &str| {
        let there = model.deployment.as_mut().unwrap();
        there.metadata.annotations.get_or_insert_default().insert(REVISION.into(), revision.into());
        let status = json!({
            "replicas": replicas, "updatedReplicas": replicas,
            "conditions": [{ "type": "ReplicaFailure", "status": said, "reason": "FailedCreate",
                "message": "pods \"m-2\" is forbidden: exceeded quota: small" }],
        });
        there.status = Some(serde_json::from_value(status).unwrap());
        let patch = set_apart(&model.model, &model.pods[0], model.deployment.as_ref());
        (planned(&model), patch["metadata"]["annotations"].clone())
    };
    let (before, noted) = of_revision("3", 1, "False");
    assert_eq!(before.moving.apart, [engine()]);
    assert_eq!(noted[REVISION], "3");
    let pods = &mut model.pods;
    pods[0].metadata.annotations = Some(serde_json::from_value(noted).unwrap());

    let mut of_revision = |revision: &str| {
        let there = model.deployment.as_mut().unwrap();
        there.metadata.annotations.get_or_insert_default().insert(REVISION.into(), revision.into());
        let status = there.status.as_mut().unwrap();
        (status.replicas, status.updated_replicas) = (None, None);
        status.conditions.as_mut().unwrap()[0].status = Some("True".to_owned());
        planned(&model)
    };
    let full = of_revision("3");
    assert_eq!((full.moving, full.status.phase), (Moving::default(), Some(Phase::Ready)));
    let scaled = full.status.conditions.iter().find(|found| found.type_ == "Scaled").unwrap();
    assert_eq!((&*scaled.status, &*scaled.reason), ("False", "QuotaExceeded"));
    assert!(scaled.message.contains("raise the quota"), "{}", scaled.message);
    assert_eq!(of_revision("4").moving, Moving { over: vec![engine()], ..Moving::default() });
    model.nodes.clear();
    model.nodes.push(Offer { name: "n1".to_owned(), ..Offer::default() });
    let there = model.deployment.as_mut().unwrap();
    there.metadata.annotations.get_or_insert_default().insert(REVISION.into(), "3".into());
    assert_eq!(planned(&model).moving, Moving::default(), "nobody would take it up");
    model.pods[0].metadata.annotations.as_mut().unwrap().insert(keys::SET_APART.into(), "a".into());
    assert_eq!(planned(&model).moving, Moving { back: vec![engine()], ..Moving::default() });
}

#[test]
fn a_model_serves_since_it_was_first_told_to_whichever_engine_does() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.effective.as_mut().unwrap().min_replicas = 0;
    model.effective.as_mut().unwrap().idle_timeout = Duration::from_secs(300);
    model.model.status = Some(planned(&model).status);
    let another = serde_json::to_value(time(at(290))).unwrap();
    let conditions = model.pods[0].status.as_mut().unwrap().conditions.as_mut().unwrap();
    conditions[0].last_transition_time = Some(serde_json::from_value(another).unwrap());
    let standing = |model: &Member| planned_at(model, 301).verdict.unwrap().standing;
    assert_eq!(standing(&model), Standing::Draining);
    model.model.status = None;
    assert_eq!(standing(&model), Standing::Holding, "it has served for so long only");
}

#[test]
fn engines_move_whatever_else_is_withheld() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.nodes = vec![going("n1")];
    for part in Part::ALL {
        model.writing = Writing::default();
        model.writing.fail(part, "not now", Some(1), at(0));
        assert_eq!(planned(&model).moving == Moving::default(), part == Part::Moving, "{part:?}");
    }
}

/// The Deployment of `model` mounts this claim.
fn mounts(model: &mut Member, claim: &str) {
    let volumes = json!([{ "name": "model", "persistentVolumeClaim": { "claimName": claim } }]);
    let template = &mut model.deployment.as_mut().unwrap().spec.template;
    template.spec.get_or_insert_default().volumes = Some(serde_json::from_value(volumes).unwrap());
}

/// What is done about an engine at a notice, and once it is set apart and another is on a node.
fn at_a_notice(model: &mut Member) -> (Moving, Moving) {
    let doomed = planned(model).moving;
    let alone = model.pods.clone();
    model.pods[0].metadata.annotations =
        Some([(keys::SET_APART.to_owned(), "true".to_owned())].into());
    let loads = json!({
        "metadata": { "name": "m-2", "uid": "p2" },
        "spec": { "nodeName": "n2", "containers": [] },
    });
    model.pods.push(serde_json::from_value(loads).unwrap());
    let apart = planned(model).moving;
    model.pods = alone;
    (doomed, apart)
}

fn can(claim: &mut Arc<PersistentVolumeClaim>, mode: &str) {
    Arc::make_mut(claim).spec.as_mut().unwrap().access_modes = Some(vec![mode.to_owned()]);
}

#[test]
fn where_a_model_cannot_be_drawn_what_its_engine_mounts_says_when_that_ends() {
    let mut model = serving_with_another_source();
    model.complaints = vec![Complaint::error("spec.config", "a typo")];
    model.nodes = vec![going("n1")];
    let name = model.claims.keys().next().unwrap().clone();
    mounts(&mut model, &name);
    let mut moving_on = |mode: &str| {
        can(model.claims.values_mut().next().unwrap(), mode);
        at_a_notice(&mut model)
    };
    let apart = Moving { apart: vec![engine()], ..Moving::default() };
    let at_once = Moving { at_once: vec![engine()], ..Moving::default() };
    let over = Moving { over: vec![engine()], ..Moving::default() };
    assert_eq!(moving_on("ReadWriteMany"), (apart.clone(), Moving::default()));
    assert_eq!(moving_on("ReadWriteOnce"), (apart, over.clone()), "the other has a node");
    assert_eq!(moving_on("ReadWriteOncePod"), (at_once, over));
}

#[test]
fn what_an_engine_mounts_that_waits_for_other_weights_says_when_it_ends() {
    let mut model = serving_with_another_source();
    model.nodes = vec![going("n1")];
    let (name, claim) = model.claims.first_key_value().unwrap();
    let (name, old) = (name.clone(), Arc::clone(claim));
    mounts(&mut model, "old");
    let mut moving_on = |from: &str, to: Option<&str>| {
        model.claims = [("old".to_owned(), Arc::clone(&old))].into();
        model.claims.extend(to.map(|_| (name.clone(), Arc::clone(&old))));
        can(model.claims.get_mut("old").unwrap(), from);
        if let Some((claim, mode)) = model.claims.get_mut(&name).zip(to) {
            can(claim, mode);
        }
        assert_eq!(planned(&model).engine, WantedEngine::Scaled(1), "it serves on as it is");
        at_a_notice(&mut model)
    };
    let apart = Moving { apart: vec![engine()], ..Moving::default() };
    let at_once = Moving { at_once: vec![engine()], ..Moving::default() };
    let over = Moving { over: vec![engine()], ..Moving::default() };
    let many = moving_on("ReadWriteMany", Some("ReadWriteOnce"));
    assert_eq!(many, (apart.clone(), Moving::default()), "until the other serves");
    assert_eq!(moving_on("ReadWriteMany", None), many, "nothing is known of the new claim");
    let one = moving_on("ReadWriteOnce", Some("ReadWriteMany"));
    assert_eq!(one, (apart, over.clone()), "the other hangs on the same claim");
    assert_eq!(moving_on("ReadWriteOncePod", Some("ReadWriteMany")), (at_once, over));
}

#[test]
fn what_an_engine_mounts_says_when_it_ends_also_where_another_like_it_is_all_that_the_server_takes()
{
    let mut model = serving(json!({ "backend": "simulator" }));
    model.model.spec.image = Some("registry/another:2".to_owned());
    model.nodes = vec![going("n1")];
    mounts(&mut model, "old");
    assert_eq!(at_a_notice(&mut model).1, Moving::default(), "the next one needs no claim");
    model.writing.fail(Part::Engine, "not now", Some(1), at(0));
    assert_eq!(planned(&model).engine, WantedEngine::Scaled(1));
    assert_eq!(at_a_notice(&mut model).1, Moving { over: vec![engine()], ..Moving::default() });
}
