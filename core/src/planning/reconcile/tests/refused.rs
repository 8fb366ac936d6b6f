//! Objects that the API server does not take.

use flexinfer_crds::conditions::ConditionType;

use super::*;
use crate::planning::writing::Why;

fn refused(member: &mut Member, part: Part, said: &str) {
    member.writing.refuse(part, (Why::of(said), said), Some(1), at(0));
}

fn condition(status: &ModelStatus, kind: ConditionType) -> (&str, &str) {
    let kind: &str = kind.into();
    let found = status.conditions.iter().find(|found| found.type_ == kind).unwrap();
    (&found.status, &found.reason)
}

#[test]
fn a_deployment_that_a_quota_forbids_is_told_and_only_tried_as_it_would_be_started() {
    let mut model = simulated("m");
    refused(&mut model, Part::Engine, "exceeded quota: none");
    let wanted = planned_at(&model, 0);
    assert_eq!(wanted.engine, WantedEngine::AsItIs, "it is left alone for now");
    assert_eq!(wanted.status.phase, Some(Phase::Failed));
    assert_eq!(condition(&wanted.status, ConditionType::Applied), ("False", "QuotaExceeded"));
    assert_eq!(condition(&wanted.status, ConditionType::Ready), ("False", "QuotaExceeded"));
    let told: Vec<_> = wanted.announcements.iter().map(|told| told.reason.as_str()).collect();
    assert_eq!(told, ["QuotaExceeded"]);
    assert!(wanted.service.is_some(), "the others go on");
    let wanted = planned_at(&model, 1);
    let WantedEngine::Tried { deployment, step: None } = wanted.engine else {
        panic!("{:?}", wanted.engine)
    };
    assert_eq!(deployment.spec.replicas, Some(1));
    assert_eq!(wanted.status.phase, Some(Phase::Failed), "until it is taken");
}

#[test]
fn an_engine_whose_edit_is_refused_serves_on_and_is_still_scaled() {
    let mut model = serving(json!({ "backend": "simulator" }));
    refused(&mut model, Part::Engine, "denied");
    let wanted = planned_at(&model, 0);
    assert_eq!(wanted.engine, WantedEngine::Scaled(1));
    assert_eq!(wanted.status.phase, Some(Phase::Ready));
    assert_eq!(condition(&wanted.status, ConditionType::Applied), ("False", "Refused"));
    model.effective.as_mut().unwrap().min_replicas = 0;
    model.record.draining = Some(at(0));
    model.writing.refuse(Part::Engine, (Why::Refused, "denied"), Some(1), at(6000));
    assert_eq!(planned_at(&model, 6000).engine, WantedEngine::Scaled(0));
}

#[test]
fn a_claim_that_a_quota_forbids_is_told_by_the_condition_of_the_weights() {
    let gguf = json!({ "ggufFile": "m.gguf" });
    let spec = json!({ "backend": "llamacpp", "source": "HF://a/b", "config": gguf });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    assert!(matches!(planned(&model).caching, Some(CacheStep::Claim(_))));
    refused(&mut model, Part::Weights, "exceeded quota: storage");
    let wanted = planned(&model);
    assert_eq!(wanted.caching, None);
    assert_eq!(wanted.status.phase, Some(Phase::Failed));
    assert_eq!(condition(&wanted.status, ConditionType::Cached), ("False", "QuotaExceeded"));
    assert_eq!(wanted.announcements.len(), 1, "{:?}", wanted.announcements);
    assert!(planned_at(&model, 1).caching.is_some(), "it is tried again");
}

#[test]
fn a_spec_that_cannot_work_is_told_before_what_was_refused() {
    let mut model = member("m", ModelSpec { backend: "vlm".into(), ..ModelSpec::default() });
    refused(&mut model, Part::Service, "denied");
    assert_eq!(condition(&planned(&model).status, ConditionType::Ready).1, "BackendUnsupported");
}

#[test]
fn another_spec_is_tried_at_once() {
    let mut model = simulated("m");
    refused(&mut model, Part::Engine, "denied");
    model.model.metadata.generation = Some(2);
    assert!(matches!(planned(&model).engine, WantedEngine::Tried { .. }));
}

#[test]
fn a_controller_that_begins_remembers_that_something_was_refused() {
    let mut model = simulated("m");
    refused(&mut model, Part::Engine, "exceeded quota: none");
    let status = planned(&model).status;
    let known = Writing::remembered(Some(&status));
    assert_eq!(known.obstacle(false), model.writing.obstacle(false));
    assert_eq!(Writing::remembered(Some(&planned(&simulated("m")).status)), Writing::default());
}

#[test]
fn a_model_whose_finalizer_is_refused_becomes_nothing() {
    let mut model = simulated("m");
    model.model.metadata.finalizers = None;
    refused(&mut model, Part::Finalizer, "denied");
    let wanted = planned(&model);
    assert_eq!((wanted.service, wanted.engine), (None, WantedEngine::AsItIs));
    assert_eq!(wanted.finalizer, Finalizer::Keep);
    assert_eq!(wanted.status.phase, Some(Phase::Failed));
}

#[test]
fn a_claim_that_is_somebody_elses_is_not_written_to() {
    let gguf = json!({ "ggufFile": "m.gguf" });
    let spec = json!({ "backend": "llamacpp", "source": "HF://a/b", "config": gguf });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    let Some(CacheStep::Claim(made)) = planned(&model).caching else { panic!("no claim") };
    let mut theirs = (*made).clone();
    theirs.metadata.owner_references = None;
    model.claims.insert("m-cache".to_owned(), Arc::new(theirs));
    let wanted = planned(&model);
    assert_eq!(wanted.caching, None, "no Job may write there");
    assert_eq!(condition(&wanted.status, ConditionType::Cached), ("False", "NameTaken"));
    assert!(wanted.status.message.unwrap().contains("cache.pvcName: m-cache"));
    model.claims.insert("m-cache".to_owned(), Arc::new(*made));
    assert!(matches!(planned(&model).caching, Some(CacheStep::Make(_))));
}

#[test]
fn who_else_writes_a_models_objects_is_told_for_a_while_and_keeps_nothing_from_running() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.dispute = Some(Dispute::new("kubectl-edit wrote .spec.replicas", at(0)));
    let wanted = planned_at(&model, 1);
    assert_eq!(condition(&wanted.status, ConditionType::Applied), ("False", "FieldConflict"));
    assert_eq!(wanted.status.phase, Some(Phase::Ready));
    assert!(wanted.announcements.iter().any(|told| told.reason == "FieldConflict"));
    let later = planned_at(&model, 600);
    assert_eq!(condition(&later.status, ConditionType::Applied), ("True", "Applied"));
}

/// A Deployment that somebody has deleted in second 0, with these finalizers.
fn going(finalizers: &[&str]) -> Going {
    let meta = json!({
        "name": "m", "deletionTimestamp": serde_json::to_value(time(at(0))).unwrap(),
        "finalizers": finalizers,
    });
    Going::of("Deployment", &serde_json::from_value(meta).unwrap()).unwrap()
}

#[test]
fn an_object_that_is_being_deleted_and_does_not_go_is_told_with_what_to_do() {
    let mut model = serving(json!({ "backend": "simulator" }));
    let applied = |model: &Member, now| {
        let status = planned_at(model, now).status;
        let found = status.conditions.into_iter().find(|found| found.type_ == "Applied").unwrap();
        (found.reason, found.message)
    };
    model.going = vec![going(&["foregroundDeletion", "vendor.example/hold"])];
    assert_eq!(applied(&model, 29).0, "Applied", "it may only take a moment");
    let (reason, message) = applied(&model, 30);
    assert_eq!(reason, "BeingDeleted");
    assert_eq!(
        message,
        "until the Deployment `m` is gone no edit of the Model reaches it; it has been deleted at 1970-01-12T13:46:40Z \
         and is kept by the finalizer `vendor.example/hold`: see to whoever has to remove that, or do it by `kubectl \
         edit deployment m`"
    );
    model.going = vec![going(&["foregroundDeletion"])];
    let (_, message) = applied(&model, 30);
    assert!(
        message.ends_with(
            "waits until its pods have ended: delete those of lost nodes with `--force`"
        )
    );
    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    assert_eq!(applied(&model, 30).0, "Applied", "it goes with its Model");
}

#[test]
fn an_object_that_is_being_deleted_is_looked_at_again_when_it_is_to_be_told() {
    let mut model = simulated("m");
    assert_eq!(whole_plan(&model, 3).revisit, None);
    model.going = vec![going(&["vendor.example/hold"])];
    assert_eq!(whole_plan(&model, 3).revisit, Some(at(30)));
}

#[test]
fn an_engine_serves_on_until_its_new_weights_are_there_although_an_edit_before_was_refused() {
    let mut model = serving_with_another_source();
    for part in [Part::Engine, Part::Service] {
        model.writing = Writing::default();
        refused(&mut model, part, "denied");
        model.model.metadata.generation = Some(2);
        let wanted = planned(&model);
        assert_eq!(wanted.engine, WantedEngine::Scaled(1), "{part:?}: the pod is not changed");
        assert!(matches!(wanted.caching, Some(CacheStep::Make(_))), "{part:?}");
        assert_eq!(condition(&wanted.status, ConditionType::Cached), ("False", "PrefetchPending"));
        assert_eq!(condition(&wanted.status, ConditionType::Applied), ("False", "Refused"));
    }
}

#[test]
fn an_engine_whose_files_are_refused_is_not_changed() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.model.spec.image = Some("registry/another:2".to_owned());
    assert!(matches!(planned(&model).engine, WantedEngine::Deployment(_)));
    refused(&mut model, Part::Files, "denied");
    assert_eq!(planned_at(&model, 0).engine, WantedEngine::Scaled(1));
}

#[test]
fn a_claim_of_the_model_before_is_waited_for() {
    let gguf = json!({ "ggufFile": "m.gguf" });
    let spec = json!({ "backend": "llamacpp", "source": "HF://a/b", "config": gguf });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    let Some(CacheStep::Claim(mut left)) = planned(&model).caching else { panic!("no claim") };
    for owner in left.metadata.owner_references.iter_mut().flatten() {
        owner.uid = "of the one before".to_owned();
    }
    model.claims.insert("m-cache".to_owned(), Arc::new(*left));
    let wanted = planned(&model);
    assert_eq!(wanted.caching, None);
    assert_eq!(condition(&wanted.status, ConditionType::Cached), ("False", "PVCProvisioning"));
    assert_ne!(wanted.status.phase, Some(Phase::Failed), "it is gone in a moment");
}

#[test]
fn k8s_17_a_claim_that_may_not_grow_keeps_a_model_with_its_weights_from_nothing() {
    let spec = json!({
        "backend": "simulator", "source": "HF://org/model", "serverless": { "minReplicas": 1 },
    });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    let Some(CacheStep::Claim(mut claim)) = planned(&model).caching else { panic!("no claim") };
    claim.status = Some(serde_json::from_value(json!({ "phase": "Bound" })).unwrap());
    model.claims.insert(claim.metadata.name.clone().unwrap(), Arc::new(*claim));
    let Some(CacheStep::Make(mut job)) = planned(&model).caching else { panic!("no Job") };
    job.status = Some(ended_as("Complete"));
    model.jobs.push(*job);
    model.model.spec.cache = Some(serde_json::from_value(json!({ "size": "900Gi" })).unwrap());
    let wanted = planned(&model);
    assert!(matches!(wanted.caching, Some(CacheStep::Claim(_))), "{:?}", wanted.caching);
    assert_eq!(deployment(&wanted).spec.replicas, Some(1), "it starts meanwhile");
    refused(&mut model, Part::Weights, "exceeded quota: storage");
    let wanted = planned(&model);
    assert_eq!(deployment(&wanted).spec.replicas, Some(1), "it starts all the same");
    assert_eq!(condition(&wanted.status, ConditionType::Cached), ("True", "PrefetchSucceeded"));
    let told = condition(&wanted.status, ConditionType::Applied);
    assert_eq!(told, ("False", "Refused"), "and ends no wait");
    assert_ne!(wanted.status.phase, Some(Phase::Failed));
}

#[test]
fn an_engine_is_put_to_sleep_although_its_files_are_tried_again() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.effective.as_mut().unwrap().min_replicas = 0;
    model.record.draining = Some(at(0));
    let wanted = planned_at(&model, 6000).engine;
    assert_eq!(replicas(&wanted), Some(0));
    assert_eq!(
        wanted.clone().but_as_it_is(1),
        WantedEngine::Scaled(0),
        "what is refused in this pass"
    );
    assert_eq!(wanted.but_as_it_is(0), WantedEngine::AsItIs);
}

fn replicas(wanted: &WantedEngine) -> Option<i32> {
    match wanted {
        WantedEngine::Deployment(deployment) => deployment.spec.replicas,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_started_that_is_not_as_it_shall_be() {
    let mut model = serving(json!({ "backend": "simulator" }));
    let Some(there) = &mut model.deployment else { panic!("no Deployment") };
    there.spec.replicas = Some(0);
    model.pods.clear();
    assert_eq!(replicas(&planned(&model).engine), Some(1));
    for part in [Part::Files, Part::Engine] {
        model.writing = Writing::default();
        model.writing.fail(part, "not now", Some(1), at(0));
        assert_eq!(planned_at(&model, 0).engine, WantedEngine::AsItIs, "{part:?}");
        assert_eq!(replicas(&planned_at(&model, 1).engine), Some(1), "{part:?}");
    }
}

#[test]
fn what_may_pass_by_itself_keeps_no_model_from_its_turn_and_is_left_alone_for_a_moment() {
    let mut model = simulated("m");
    model.writing.fail(Part::Service, "not now", Some(1), at(0));
    model.writing.fail(Part::Status, "not now", Some(1), at(0));
    let wanted = planned_at(&model, 0);
    assert_eq!(wanted.service, None);
    assert_eq!(wanted.withheld, [Part::Service, Part::Status]);
    assert_eq!(condition(&wanted.status, ConditionType::Applied), ("True", "Applied"));
    assert_eq!(wanted.status.phase, Some(Phase::Idle));
    assert!(planned_at(&model, 1).service.is_some());
}

#[test]
fn replicas_that_an_external_autoscaler_has_and_that_were_refused_are_tried_as_they_are_written() {
    let mut scaled = simulated("m");
    scaled.model.metadata.annotations =
        Some([(keys::AUTOSCALER.to_owned(), "external".to_owned())].into());
    scaled.deployment = Some(deployment(&planned(&scaled)).clone());
    scaled.effective.as_mut().unwrap().min_replicas = 1;
    for part in [Part::Engine, Part::Replicas] {
        scaled.writing = Writing::default();
        refused(&mut scaled, part, "denied");
        let wanted = planned_at(&scaled, 1);
        assert_eq!(wanted.verdict.as_ref().unwrap().replicas, 0, "it has no place in the election");
        let WantedEngine::Tried { deployment, step } = wanted.engine else {
            panic!("{:?}", wanted.engine)
        };
        assert_eq!((deployment.spec.replicas, step), (None, Some(1)), "{part:?}");
    }
}
