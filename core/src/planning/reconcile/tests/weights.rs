//! Weights on their claim, and copies of them in nodes' memory.

use super::*;

#[test]
fn weights_are_on_their_claim_before_an_engine_starts() {
    let spec = json!({
        "backend": "llamacpp",
        "source": "HF://org/model",
        "config": { "ggufFile": "m.gguf" },
        "serverless": { "minReplicas": 1 },
    });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    let wanted = planned(&model);
    let Some(CacheStep::Claim(claim)) = wanted.caching else { panic!("{:?}", wanted.caching) };
    assert_eq!(wanted.status.phase, Some(Phase::Pending));
    assert_eq!(deployment(&planned(&model)).spec.replicas, Some(0));

    let name = claim.metadata.name.clone().unwrap();
    model.claims.insert(name, Arc::new(*claim));
    let wanted = planned(&model);
    let Some(CacheStep::Make(mut job)) = wanted.caching else { panic!("{:?}", wanted.caching) };
    let cached = |wanted: &Wanted| {
        let found = wanted.status.conditions.iter().find(|found| found.type_ == "Cached").unwrap();
        (found.status.clone(), found.reason.clone())
    };
    let pending = ("False".to_owned(), "PrefetchPending".to_owned());
    assert_eq!(cached(&planned(&model)), pending);

    let done = json!({ "conditions": [{ "type": "Complete", "status": "True" }], "succeeded": 1 });
    job.status = Some(serde_json::from_value(done).unwrap());
    model.jobs.push(*job);
    let wanted = planned(&model);
    assert_eq!(cached(&wanted), ("True".to_owned(), "PrefetchSucceeded".to_owned()));
    assert_eq!(deployment(&wanted).spec.replicas, Some(1));
    assert_eq!(wanted.status.cache.unwrap().ready, Some(true));
}

#[test]
fn an_engine_serves_on_until_its_new_weights_are_there() {
    let model = serving_with_another_source();
    let wanted = planned(&model);
    assert!(matches!(wanted.caching, Some(CacheStep::Make(_))));
    assert_eq!(wanted.engine, WantedEngine::Scaled(1), "the pod is not changed");
    assert_eq!(wanted.status.phase, Some(Phase::Ready));
    assert!(wanted.status.message.unwrap().ends_with("what ran before serves on"));
}

#[test]
fn copies_in_memory_are_known_while_the_model_sleeps_and_until_their_node_is_gone() {
    let mut model = kept_in_memory();
    let nodes = |wanted: &Wanted| wanted.status.cache.clone().map(|cache| cache.nodes);
    assert_eq!(nodes(&planned(&model)), None);
    model.pods = vec![keeping_on("b")];
    let first = planned(&model);
    assert_eq!(nodes(&first), Some(vec!["b".to_owned()]));
    model.model.status = Some(first.status);
    model.pods = vec![keeping_on("a")];
    let second = planned(&model);
    assert_eq!(nodes(&second), Some(vec!["a".to_owned(), "b".to_owned()]));
    model.model.status = Some(second.status);
    model.pods.clear();
    model.nodes.remove(0);
    assert_eq!(nodes(&planned(&model)), Some(vec!["b".to_owned()]));
    model.complaints = vec![Complaint::error("spec.config", "a typo")];
    assert!(nodes(&planned(&model)).is_some_and(|nodes| nodes.contains(&"b".to_owned())));
}

/// A model that is fetched onto a claim which is there, with the Job that does it.
pub(super) fn fetching() -> Member {
    let spec = json!({
        "backend": "simulator", "source": "HF://org/model", "serverless": { "minReplicas": 1 },
    });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    let Some(CacheStep::Claim(mut claim)) = planned(&model).caching else { panic!("a claim") };
    claim.spec.as_mut().unwrap().storage_class_name = Some("plain".to_owned());
    claim.status = Some(serde_json::from_value(json!({ "phase": "Bound" })).unwrap());
    model.claims.insert("m-cache".to_owned(), Arc::new(*claim));
    let Some(CacheStep::Make(job)) = planned(&model).caching else { panic!("a Job") };
    model.jobs.push(*job);
    model
}

#[test]
fn a_job_of_which_the_image_cannot_be_pulled_is_a_failure_that_those_who_wait_are_told() {
    let mut model = fetching();
    let active = json!({ "active": 1 });
    model.jobs[0].status = Some(serde_json::from_value(active).unwrap());
    let pod = json!({
        "metadata": {
            "name": "p", "labels": { "batch.kubernetes.io/job-name": "m-cache-prefetch" },
        },
        "status": { "phase": "Pending", "containerStatuses": [{
            "name": "fetch", "image": "NODE:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } },
        }] },
    });
    model.job_pods.push(serde_json::from_value(pod).unwrap());
    let status = planned(&model).status;
    assert_eq!(status.phase, Some(Phase::Failed));
    for kind in ["Cached", "Ready"] {
        let found = status.conditions.iter().find(|found| found.type_ == kind).unwrap();
        assert_eq!((&*found.status, &*found.reason), ("False", "ImagePullFailed"), "{kind}");
        assert!(found.message.contains("no such image"), "{}", found.message);
    }
}

#[test]
fn k8s_17_a_class_that_lets_nothing_grow_is_asked_for_nothing_and_the_rest_goes_on() {
    let mut model = fetching();
    model.jobs[0].status = Some(ended_as("Complete"));
    model.model.spec.cache = Some(serde_json::from_value(json!({ "size": "80Gi" })).unwrap());
    for (classes, grows) in [
        (Some([("plain".to_owned(), false)].into()), false),
        (Some([("other".to_owned(), true)].into()), false),
        (Some([("plain".to_owned(), true)].into()), true),
        (None, true),
    ] {
        model.storage_classes = classes;
        let wanted = planned(&model);
        assert_eq!(matches!(wanted.caching, Some(CacheStep::Claim(_))), grows);
        if !grows {
            assert_eq!(deployment(&wanted).spec.replicas, Some(1), "the rest goes on");
            let conditions = &wanted.status.conditions;
            let cached = conditions.iter().find(|found| found.type_ == "Cached").unwrap();
            assert!(cached.message.contains("cannot grow to 80Gi"), "{}", cached.message);
        }
    }
}
