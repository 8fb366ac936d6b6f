//! Copies in nodes' memory that a Model keeps no more: they go before it does.

use super::*;

fn kept_on(wanted: &Wanted) -> Vec<String> {
    wanted.status.cache.clone().map(|cache| cache.nodes).unwrap_or_default()
}

/// One whose copy is in the memory of `a`, where it serves.
fn serving_from_memory() -> Member {
    let mut model = kept_in_memory();
    model.pods = vec![serving_on("a")];
    model.model.status = Some(planned(&model).status);
    model
}

/// The same after an edit.
fn edited(mut model: Member, edit: impl FnOnce(&mut ModelSpec)) -> Member {
    edit(&mut model.model.spec);
    model.model.metadata.generation = Some(2);
    model.effective = Some(Effective::of(&model.model, 2, &Defaults::default()).unwrap());
    model
}

#[test]
fn a_copy_goes_when_the_model_keeps_none_any_more() {
    let without = |spec: &mut ModelSpec| spec.cache = None;
    let alone = |spec: &mut ModelSpec| spec.gpu.as_mut().unwrap().shared = None;
    for edit in [without as fn(&mut ModelSpec), alone] {
        let mut model = edited(serving_from_memory(), edit);
        let wanted = planned(&model);
        assert_eq!((wanted.jobs.len(), kept_on(&wanted).len()), (0, 1), "an engine reads it yet");
        model.pods.clear();
        let wanted = planned(&model);
        assert_eq!((wanted.jobs.len(), kept_on(&wanted).len()), (1, 1));
        model.jobs = wanted.jobs;
        assert_eq!(planned(&model).jobs, [], "it is made once");
        model.jobs[0].status = Some(ended_as("Complete"));
        let wanted = planned(&model);
        assert_eq!((wanted.jobs.len(), kept_on(&wanted).len()), (0, 0));
    }
}

#[test]
fn a_copy_on_a_node_that_the_model_has_left_goes_once_it_serves_elsewhere() {
    let moved = |spec: &mut ModelSpec| {
        spec.node_selector = [("disk".to_owned(), "fast".to_owned())].into();
    };
    let mut model = edited(serving_from_memory(), moved);
    model.nodes[1].labels.insert("disk".to_owned(), "fast".to_owned());
    model.pods.clear();
    assert_eq!(planned(&model).jobs, [], "another node may get it from there");
    model.pods = vec![serving_on("b")];
    let wanted = planned(&model);
    assert_eq!(kept_on(&wanted), ["a", "b"]);
    assert_eq!(wanted.jobs.len(), 1);
    model.jobs = wanted.jobs;
    model.jobs[0].status = Some(ended_as("Complete"));
    let wanted = planned(&model);
    assert_eq!((kept_on(&wanted), wanted.jobs), (vec!["b".to_owned()], Vec::new()));
}

#[test]
fn a_copy_that_is_of_use_stays_while_the_model_sleeps_or_serves_elsewhere() {
    let mut model = serving_from_memory();
    model.pods.clear();
    assert_eq!(planned(&model).jobs, []);
    model.pods = vec![serving_on("b")];
    let wanted = planned(&model);
    assert_eq!((kept_on(&wanted).len(), wanted.jobs), (2, Vec::new()));
}

#[test]
fn nothing_is_started_while_a_copy_is_being_removed() {
    let mut model = serving_from_memory();
    model.pods.clear();
    let claim = json!({ "metadata": { "uid": "c" }, "status": { "phase": "Bound" } });
    let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
    model.claims.insert("weights".to_owned(), Arc::new(claim));
    let Some(CacheStep::Make(mut check)) = planned(&model).caching else { panic!("no check") };
    check.status = Some(ended_as("Complete"));
    model.jobs = vec![*check];
    let phase = |model: &Member| planned(model).status.phase;
    assert_eq!(phase(&model), Some(Phase::Idle));

    let cache = model.model.spec.cache.clone();
    let mut model = edited(model, |spec| spec.cache = None);
    model.jobs.extend(planned(&model).jobs);
    assert_eq!(phase(&model), Some(Phase::Idle), "it keeps none, and may start");
    let mut model = edited(model, |spec| spec.cache = cache);
    let wanted = planned(&model);
    assert_eq!(wanted.status.phase, Some(Phase::Pending));
    assert!(wanted.status.message.unwrap().contains("is being removed"));
    model.jobs[1].status = Some(ended_as("Failed"));
    assert_eq!(phase(&model), Some(Phase::Idle));

    // Its node is switched off: the Job's pod never ends, and so neither does the Job.
    model.jobs[1].status = Some(ended_as("FailureTarget"));
    model.jobs[1].metadata.creation_timestamp = Some(time(at(0)));
    let phase = |now| planned_at(&model, now).status.phase;
    assert_eq!(phase(79), Some(Phase::Pending), "a pod may end yet");
    assert_eq!(phase(80), Some(Phase::Idle));
}

#[test]
fn a_clean_up_that_failed_is_not_made_again_for_an_hour_and_one_that_is_done_goes() {
    let mut model = edited(serving_from_memory(), |spec| spec.cache = None);
    model.pods.clear();
    model.jobs = planned(&model).jobs;
    assert_eq!(model.jobs[0].spec.as_ref().unwrap().ttl_seconds_after_finished, Some(3600));
    model.jobs[0].status = Some(ended_as("Failed"));
    let wanted = planned(&model);
    assert_eq!((wanted.jobs.len(), kept_on(&wanted).len(), wanted.outdated), (0, 1, None));

    model.jobs[0].status = Some(ended_as("Complete"));
    let wanted = planned(&model);
    assert_eq!((kept_on(&wanted).len(), &wanted.outdated), (0, &None), "it is told first");
    model.model.status = Some(wanted.status);
    assert_eq!(planned(&model).outdated, model.jobs[0].metadata.name);

    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    assert_eq!(planned(&model).outdated, None);
}
