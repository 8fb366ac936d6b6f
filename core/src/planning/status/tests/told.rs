//! The events of what changed.

use super::*;
use crate::placement::benchmarks::DeviceClass;
use crate::planning::group::{Coming, Failed};
use crate::planning::writing::{Part, Why};

fn told(before: Option<&Case>, after: &Case) -> Vec<String> {
    let before = before.map(|case| case.status(10));
    announcements(before.as_ref(), &after.status(20), None)
        .into_iter()
        .map(|said| said.reason)
        .collect()
}

#[test]
fn a_models_life_is_told_once_each() {
    let asleep = Case::new(Standing::Asleep);
    let loading = Case::new(Standing::Holding).loading();
    let serving = Case::new(Standing::Holding).serving();
    assert_eq!(told(None, &asleep), Vec::<String>::new());
    assert_eq!(told(Some(&asleep), &loading), ["Loading"]);
    assert_eq!(told(Some(&loading), &serving), ["Ready"]);
    assert_eq!(told(Some(&serving), &serving), Vec::<String>::new());
    assert_eq!(told(Some(&serving), &asleep), ["Sleeping"]);
    let swap = Preempted { by: id("b"), at: at(0) };
    let preempted = Case::new(Standing::Preempted(swap));
    assert_eq!(told(Some(&serving), &preempted), ["Preempted"]);
}

#[test]
fn a_failure_is_told_with_its_reason() {
    let loading = Case::new(Standing::Holding).loading();
    let mut failed = Case::new(Standing::Barred { until: at(60) });
    let verdict = failed.verdict.as_mut().unwrap();
    verdict.record.failed =
        Some(Failed { hindrance: hindrance(LoadHindrance::CrashLoop), until: at(60) });
    let (before, after) = (loading.status(10), failed.status(20));
    let said = announcements(Some(&before), &after, None);
    assert_eq!(said.len(), 1);
    assert!(said[0].warning);
    assert_eq!(said[0].note, "in Kubernetes' words");
}

#[test]
fn two_claims_to_one_name_are_told() {
    let before = Case::new(Standing::Asleep);
    let mut after = Case::new(Standing::Asleep);
    after.name_conflict = Some("other also claims `chat`");
    assert_eq!(told(Some(&before), &after), ["AliasConflict"]);
}

#[test]
fn a_swap_tells_how_long_each_part_took() {
    let before = Case::new(Standing::Holding).loading().status(10);
    let after = Case::new(Standing::Holding).serving().status(20);
    let coming = Coming { decided: at(0), drained: Some(at(2)), started: Some(at(5)) };
    let said = announcements(Some(&before), &after, Some(&coming));
    let wanted = "serving; draining the other took 2.0 s, stopping it 3.0 s; loading took 7.0 s";
    assert_eq!((said[0].note.as_str(), said[0].own), (wanted, true), "each swap is told by itself");
    let said = announcements(Some(&before), &after, None);
    assert!(!said[0].own, "a load without a swap is counted with others");
}

#[test]
fn how_fast_it_is_stays_known_while_it_sleeps_and_each_step_is_told_once() {
    let mut case = Case::new(Standing::Holding).serving();
    let said = |reason: ConditionReason| Some((reason, "in words".to_owned()));
    let told = |case: &mut Case| {
        let new = case.status(10);
        let all = announcements(case.model.status.as_ref(), &new, None);
        case.model.status = Some(new);
        let about = all.into_iter().filter(|one| one.reason.starts_with("Benchmark"));
        about.map(|one| (one.reason, one.warning)).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut case), [], "nobody asked");
    case.benchmark = said(ConditionReason::BenchmarkPending);
    assert_eq!(told(&mut case), []);
    case.benchmark = said(ConditionReason::BenchmarkRunning);
    assert_eq!(told(&mut case), [("BenchmarkRunning".to_owned(), false)]);
    assert_eq!(told(&mut case), []);
    case.benchmark = said(ConditionReason::BenchmarkSucceeded);
    case.measured = Some(Measured {
        configuration: None,
        is_its_own: true,
        class: DeviceClass::default(),
        tokens_per_second: 49.96,
        duration_seconds: None,
        latency_ms: Some(1234.5),
    });
    assert_eq!(told(&mut case), [("BenchmarkSucceeded".to_owned(), false)]);
    let complete = condition(&case.status(10), ConditionType::BenchmarkComplete);
    assert_eq!(complete, ("True".to_owned(), "BenchmarkSucceeded".to_owned()));

    case.measured = None;
    let metrics = case.status(10).metrics.unwrap();
    let speed = (metrics.tokens_per_second.as_deref(), metrics.avg_latency_ms.as_deref());
    assert_eq!(speed, (Some("50.0"), Some("1234")), "it stays true while nobody serves");
    case.benchmark = said(ConditionReason::BenchmarkFailed);
    assert_eq!(told(&mut case), [("BenchmarkFailed".to_owned(), true)]);
}

/// One that could not be started.
fn failed() -> Case {
    let mut failed = Case::new(Standing::Barred { until: at(60) });
    failed.verdict.as_mut().unwrap().record.failed =
        Some(Failed { hindrance: hindrance(LoadHindrance::CrashLoop), until: at(60) });
    failed
}

#[test]
fn a_failure_is_told_beside_what_is_wrong_otherwise() {
    let loading = Case::new(Standing::Holding).loading();
    let mut disputed = failed();
    let said = "kyverno wrote .spec.template".to_owned();
    disputed.meddled = Some((ConditionReason::FieldConflict, said));
    assert_eq!(told(Some(&loading), &disputed), ["Failed", "FieldConflict"]);
    let mut unmeasured = failed();
    unmeasured.writing.refuse(Part::Jobs, (Why::Refused, "denied"), Some(3), at(10));
    assert_eq!(told(Some(&loading), &unmeasured), ["Failed", "Refused"]);
}

#[test]
fn a_failure_that_the_condition_says_which_was_lost_is_told_once() {
    let idle = Case::new(Standing::Asleep);
    let mut refused = Case::new(Standing::Obstructed);
    refused.writing.refuse(Part::Engine, (Why::Refused, "denied"), Some(3), at(10));
    refused.obstacle = refused.writing.obstacle(false);
    assert_eq!(told(Some(&idle), &refused), ["Refused"]);
    // What was refused while it served keeps it from being started now.
    let serving =
        Case { writing: refused.writing.clone(), ..Case::new(Standing::Holding).serving() };
    assert_eq!(told(Some(&serving), &refused), ["Failed"]);
}
