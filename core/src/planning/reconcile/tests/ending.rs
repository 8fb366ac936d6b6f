//! Models that are deleted: nothing of them is left, and nothing waits for ever.

use super::*;
use crate::planning::writing::Why;

#[test]
fn k8s_14_a_model_that_could_never_run_is_let_go() {
    for spec in [
        ModelSpec { backend: "vlm".into(), ..ModelSpec::default() },
        ModelSpec {
            backend: "comfyui".into(),
            source: Some("HF://a/b".into()),
            gpu: Some(Gpu::default()),
            ..ModelSpec::default()
        },
    ] {
        let mut doomed = member("m", spec);
        doomed.model.metadata.deletion_timestamp = Some(time(at(0)));
        assert_eq!(planned(&doomed).finalizer, Finalizer::Remove);
    }
}

#[test]
fn k8s_14_a_deleted_model_waits_for_its_pods_but_not_for_ever() {
    let mut leaving = simulated("m");
    let pod = json!({ "metadata": { "name": "m-1" }, "spec": { "containers": [] } });
    leaving.pods.push(serde_json::from_value(pod).unwrap());
    leaving.model.metadata.deletion_timestamp = Some(time(at(0)));
    assert_eq!(planned_at(&leaving, 10).finalizer, Finalizer::Keep);
    let wanted = planned_at(&leaving, 50);
    assert_eq!(wanted.finalizer, Finalizer::Remove, "its node may be lost");
    leaving.pods.clear();
    assert_eq!(planned_at(&leaving, 10).finalizer, Finalizer::Remove);
}

#[test]
fn a_deleted_model_gets_nothing_new() {
    let mut leaving = simulated("m");
    leaving.model.metadata.deletion_timestamp = Some(time(at(0)));
    let wanted = planned(&leaving);
    assert_eq!((wanted.engine, wanted.service), (WantedEngine::Nothing, None));
}

#[test]
fn a_deleted_model_waits_until_its_copies_are_gone_but_not_for_ever() {
    let mut model = kept_in_memory();
    model.pods = vec![keeping_on("a")];
    model.model.status = Some(planned(&model).status);
    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    let leaving = planned_at(&model, 1);
    assert_eq!((leaving.jobs, leaving.finalizer), (Vec::new(), Finalizer::Keep), "it serves yet");

    model.pods.clear();
    let wanted = planned_at(&model, 2);
    assert_eq!((wanted.jobs.len(), wanted.finalizer), (1, Finalizer::Keep));
    model.jobs = wanted.jobs;
    let wanted = planned_at(&model, 3);
    assert_eq!((wanted.jobs.len(), wanted.finalizer), (0, Finalizer::Keep));
    assert_eq!(planned_at(&model, 50).finalizer, Finalizer::Remove, "its node may be lost");
    for end in ["Complete", "Failed"] {
        model.jobs[0].status = Some(ended_as(end));
        assert_eq!(planned_at(&model, 4).finalizer, Finalizer::Remove, "{end}");
    }
}

#[test]
fn k8s_14_where_the_namespace_goes_nobody_waits_for_what_cannot_be_made_there() {
    let mut model = kept_in_memory();
    model.pods = vec![keeping_on("a")];
    model.model.status = Some(planned(&model).status);
    model.pods.clear();
    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    let refused = |said: &str| {
        let mut writing = Writing::default();
        writing.refuse(Part::Jobs, (Why::of(said), said), Some(1), at(2));
        writing
    };
    model.writing = refused("jobs \"x\" is forbidden: exceeded quota: small");
    assert_eq!(planned_at(&model, 3).finalizer, Finalizer::Keep, "there may be room again");
    let ends = "jobs \"x\" is forbidden: unable to create new content in namespace a because it is \
                being terminated";
    model.writing = refused(ends);
    assert_eq!(planned_at(&model, 3).finalizer, Finalizer::Remove);
}

#[test]
fn a_pod_that_failed_is_removed_after_a_while() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.pods[0].status.as_mut().unwrap().phase = Some("Failed".to_owned());
    assert_eq!(planned_at(&model, 299).leftovers, []);
    let gone = PodId { name: "m-1".to_owned(), uid: "p1".to_owned() };
    assert_eq!(planned_at(&model, 300).leftovers, [gone]);
}

#[test]
fn a_pod_that_ends_is_released_once_it_was_drained_or_has_had_its_time() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.pods[0].metadata.deletion_timestamp = Some(time(at(90)));
    model.pods[0].metadata.deletion_grace_period_seconds = Some(90);
    let released = PodId { name: "m-1".to_owned(), uid: "p1".to_owned() };
    assert_eq!(
        planned_at(&model, 9).released,
        [],
        "somebody else ends it, and gateways learn that"
    );
    assert_eq!(planned_at(&model, 10).released, std::slice::from_ref(&released));
    model.effective.as_mut().unwrap().min_replicas = 0;
    model.deployment.as_mut().unwrap().spec.replicas = Some(0);
    assert_eq!(planned_at(&model, 1).released, [released]);
}
