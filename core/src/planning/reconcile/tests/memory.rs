//! Copies in nodes' memory that a Model keeps no more: they go before it does.

use super::*;

fn kept_on(wanted: &Wanted) -> Vec<String> {
    wanted.status.cache.clone().map(|cache| cache.nodes).unwrap_or_default()
}

/// One whose copy is in the memory of `a`, where it serves.
fn serving_from_memory() -> Member {
    let mut model = kept_in_memory();
    model.pods = vec![keeping_on("a")];
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
fn a_copy_that_the_model_keeps_no_more_goes_while_it_serves_on_that_node_without_it() {
    let mut model = edited(serving_from_memory(), |spec| spec.gpu.as_mut().unwrap().shared = None);
    model.pods.push(serving_on("a"));
    assert_eq!(planned(&model).jobs, [], "one of them reads it yet");
    model.pods.remove(0);
    assert_eq!(planned(&model).jobs.len(), 1, "its weights would be in memory twice");
}

/// What remembers the last look, as the controller does.
fn looked_at(model: &mut Member, now: u64) -> Wanted {
    let wanted = planned_at(model, now);
    model.record = wanted.verdict.clone().unwrap().record;
    wanted
}

#[test]
fn a_copy_on_a_node_that_the_model_has_left_goes_once_it_serves_elsewhere_for_some_minutes() {
    let moved = |spec: &mut ModelSpec| {
        spec.node_selector = [("disk".to_owned(), "fast".to_owned())].into();
    };
    let mut model = edited(serving_from_memory(), moved);
    model.nodes[1].labels.insert("disk".to_owned(), "fast".to_owned());
    model.pods.clear();
    assert_eq!(looked_at(&mut model, 0).jobs, []);
    assert_eq!(looked_at(&mut model, 500).jobs, [], "another node may get it from there");
    model.pods = vec![keeping_on("b")];
    let wanted = looked_at(&mut model, 501);
    assert_eq!(kept_on(&wanted), ["a", "b"]);
    assert_eq!(wanted.jobs.len(), 1);
    model.jobs = wanted.jobs;
    model.jobs[0].status = Some(ended_as("Complete"));
    let wanted = looked_at(&mut model, 502);
    assert_eq!((kept_on(&wanted), wanted.jobs), (vec!["b".to_owned()], Vec::new()));
}

#[test]
fn a_copy_on_a_node_that_the_model_names_no_more_goes_as_soon_as_it_serves_elsewhere() {
    let named = |name: &str| [("kubernetes.io/hostname".to_owned(), name.to_owned())];
    let mut model = edited(serving_from_memory(), |spec| spec.node_selector = named("b").into());
    for node in &mut model.nodes {
        node.labels.extend(named(&node.name.clone()));
    }
    model.pods.clear();
    assert_eq!(looked_at(&mut model, 0).jobs, [], "another node may get it from there");
    model.pods = vec![keeping_on("b")];
    assert_eq!(looked_at(&mut model, 1).jobs.len(), 1);
}

#[test]
fn a_copy_stays_where_what_a_node_says_of_itself_is_away_for_a_moment() {
    let mut model = serving_from_memory();
    model.pods = vec![keeping_on("b")];
    let there = model.nodes[0].clone();
    for begun in [0, 400] {
        model.nodes[0] = Offer { name: "a".to_owned(), ..Offer::default() };
        let wanted = looked_at(&mut model, begun);
        assert_eq!((wanted.jobs.len(), kept_on(&wanted).len()), (0, 2));
        assert_eq!(revisit(&model, begun), Some(at(begun + 300)));
        assert_eq!(looked_at(&mut model, begun + 299).jobs, []);
        model.nodes[0] = there.clone();
        assert_eq!(looked_at(&mut model, begun + 300).jobs, []);
    }
    model.nodes[0] = Offer { name: "a".to_owned(), ..Offer::default() };
    looked_at(&mut model, 1000);
    assert_eq!(looked_at(&mut model, 1300).jobs.len(), 1, "it stays away");
}

#[test]
fn no_clean_up_is_begun_on_a_node_that_can_run_nothing_however_often_the_model_is_edited() {
    let without = |spec: &mut ModelSpec| spec.cache = None;
    let mut model = edited(serving_from_memory(), without);
    model.pods.clear();
    model.nodes[0].unready = true;
    let wanted = planned(&model);
    assert_eq!((wanted.jobs.len(), kept_on(&wanted).len()), (0, 1));
    model.nodes[0].unready = false;
    assert_eq!(planned(&model).jobs.len(), 1);
    model.nodes[0].unready = true;
    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    assert_eq!(planned(&model).jobs.len(), 1, "the last that can be done for it");
}

#[test]
fn a_copy_that_is_of_use_stays_while_the_model_sleeps_or_serves_elsewhere() {
    let mut model = serving_from_memory();
    model.pods.clear();
    assert_eq!(planned(&model).jobs, []);
    model.pods = vec![keeping_on("b")];
    let wanted = planned(&model);
    assert_eq!((kept_on(&wanted).len(), wanted.jobs), (2, Vec::new()));
}

/// The same with its claim there, and that looked at.
fn with_weights(mut model: Member) -> Member {
    let claim = json!({ "metadata": { "uid": "c" }, "status": { "phase": "Bound" } });
    let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
    model.claims.insert("weights".to_owned(), Arc::new(claim));
    let Some(CacheStep::Make(mut check)) = planned(&model).caching else { panic!("no check") };
    check.status = Some(ended_as("Complete"));
    model.jobs = vec![*check];
    model
}

#[test]
fn an_engine_is_not_changed_to_one_that_keeps_a_copy_while_an_older_one_is_being_removed() {
    let with = serving_from_memory();
    let cache = with.model.spec.cache.clone();
    let mut model = with_weights(edited(with, |spec| spec.cache = None));
    model.pods = vec![serving_on("a")];
    let mut there = deployment(&planned(&model)).clone();
    there.spec.replicas = Some(1);
    model.deployment = Some(there);
    let removing = planned(&model).jobs;
    assert_eq!(removing.len(), 1);
    model.jobs.extend(removing);
    let mut model = edited(model, |spec| spec.cache = cache);
    let wanted = planned(&model);
    assert!(matches!(wanted.engine, WantedEngine::Scaled(_)), "{:?}", wanted.engine);
    model.jobs[1].status = Some(ended_as("Complete"));
    assert!(matches!(planned(&model).engine, WantedEngine::Deployment(_)), "as it is now");
}

#[test]
fn nothing_is_started_while_a_copy_is_being_removed() {
    let mut model = serving_from_memory();
    model.pods.clear();
    let model = with_weights(model);
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
    let went = (wanted.jobs.len(), kept_on(&wanted).len(), wanted.outdated);
    assert_eq!(went, (0, 1, Vec::new()));

    model.jobs[0].status = Some(ended_as("Complete"));
    let wanted = planned(&model);
    assert_eq!((kept_on(&wanted).len(), wanted.outdated.len()), (0, 0), "it is told first");
    model.model.status = Some(wanted.status);
    assert_eq!(planned(&model).outdated, [model.jobs[0].metadata.name.clone().unwrap()]);
    let mut another = model.jobs[0].clone();
    another.metadata.name = Some("another".to_owned());
    model.jobs.push(another);
    assert_eq!(planned(&model).outdated.len(), 2, "neither waits for the other");

    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    assert_eq!(planned(&model).outdated, Vec::<String>::new());
}

#[test]
fn a_copy_that_was_removed_is_not_named_although_the_model_keeps_some_again() {
    let with = serving_from_memory();
    let cache = with.model.spec.cache.clone();
    let mut model = edited(with, |spec| spec.cache = None);
    model.pods.clear();
    model.jobs = planned(&model).jobs;
    let mut model = edited(model, |spec| spec.cache = cache);
    assert_eq!(kept_on(&planned(&model)), ["a"], "it is only being removed");
    model.jobs[0].status = Some(ended_as("Complete"));
    let name = model.jobs[0].metadata.name.clone().unwrap();
    let told = planned(&model);
    let going = (kept_on(&told).len(), told.jobs.len(), told.outdated.len());
    assert_eq!(going, (0, 0, 0));

    model.pods = vec![keeping_on("a")];
    let again = planned(&model);
    assert_eq!(kept_on(&again), ["a"], "another came");
    assert_eq!(again.outdated, [&*name]);
    model.pods.clear();
    model.model.status = Some(told.status);
    assert_eq!(planned(&model).outdated, [name]);
}
