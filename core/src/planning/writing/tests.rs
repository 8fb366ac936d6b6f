//! Refusals as tables.

use super::*;

fn at(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
}

fn refused(part: Part, said: &str) -> Writing {
    let mut writing = Writing::default();
    writing.refuse(part, (Why::of(said), said), Some(1), at(0));
    writing
}

#[test]
fn a_quota_is_named_by_its_reason_and_anything_else_is_a_refusal() {
    let quota = refused(Part::Engine, "deployments.apps \"m\" is forbidden: exceeded quota: none");
    let obstacle = quota.obstacle(false).unwrap();
    assert_eq!((obstacle.condition, obstacle.reason), (ConditionType::Applied, "QuotaExceeded"));
    assert!(obstacle.lasting && obstacle.message.contains("exceeded quota: none"));
    let rule = refused(Part::Service, "admission webhook denied the request");
    assert_eq!(rule.obstacle(false).unwrap().reason, "Refused");
}

#[test]
fn refused_weights_are_said_by_their_own_condition_too() {
    let claim = refused(Part::Weights, "exceeded quota: storage");
    assert_eq!(claim.obstacle(false).unwrap().condition, ConditionType::Cached);
    assert_eq!(claim.trouble(false).unwrap().0, "QuotaExceeded");
}

#[test]
fn what_nobody_waits_for_keeps_no_model_from_starting() {
    let jobs = refused(Part::Jobs, "exceeded quota: count/jobs.batch");
    assert_eq!(jobs.obstacle(false), None);
    assert_eq!(
        jobs.trouble(false).unwrap().0,
        "Refused",
        "a quota would end the wait for its engine"
    );
    assert!(jobs.of_jobs().is_some());
}

#[test]
fn it_is_tried_again_after_a_while_that_grows_and_at_once_for_another_spec() {
    let mut writing = refused(Part::Engine, "no");
    let withheld = |writing: &Writing, now| writing.withholds(Part::Engine, Some(1), at(now));
    assert!(withheld(&writing, 0) && !withheld(&writing, 1));
    assert_eq!(writing.next_try(at(0)), Some(at(1)));
    for now in [1, 3, 7, 15, 31] {
        assert!(!withheld(&writing, now));
        writing.refuse(Part::Engine, (Why::Refused, "no"), Some(1), at(now));
    }
    assert!(withheld(&writing, 60) && !withheld(&writing, 61), "not longer than that");
    assert!(!writing.withholds(Part::Engine, Some(2), at(32)));
    assert!(!writing.withholds(Part::Service, Some(1), at(32)), "the others go on");
    writing.take(Part::Engine);
    assert_eq!(writing, Writing::default());
}

#[test]
fn the_same_refusal_again_is_nothing_new() {
    let first = refused(Part::Engine, "no");
    let mut second = first.clone();
    second.refuse(Part::Engine, (Why::Refused, "no"), Some(1), at(1));
    assert!(!second.differs(&first));
    second.refuse(Part::Engine, (Why::Quota, "exceeded quota"), Some(1), at(3));
    assert!(second.differs(&first) && first.differs(&Writing::default()));
}

#[test]
fn how_often_it_was_refused_counts_until_it_is_written_whatever_comes_between() {
    let mut writing = refused(Part::Engine, "no");
    for (now, later) in [(1, 3), (3, 7), (7, 15), (15, 31), (31, 61)] {
        // A trial that is taken, or a pass in which nothing is to be written.
        writing.rest(Part::Engine);
        assert!(!writing.is_refused(Part::Engine) && writing.obstacle(false).is_none());
        writing.refuse(Part::Engine, (Why::Refused, "no"), Some(1), at(now));
        assert_eq!(writing.next_try(at(now)), Some(at(later)));
    }
    writing.take(Part::Engine);
    writing.refuse(Part::Engine, (Why::Refused, "no"), Some(1), at(100));
    assert_eq!(writing.next_try(at(100)), Some(at(101)), "it was written meanwhile");
}

/// A write of this part that failed so often, as soon as it was tried again.
fn failed(part: Part, times: u32) -> Writing {
    let mut writing = Writing::default();
    let mut now = at(0);
    for time in 0..times {
        writing.fail(part, &format!("cannot store it ({time})"), Some(1), now);
        now = writing.next_try(now).unwrap();
    }
    writing
}

#[test]
fn what_may_pass_by_itself_is_tried_again_after_a_while_and_told_nowhere() {
    let mut writing = Writing::default();
    for (now, later) in [(0, 1), (1, 3), (3, 7), (7, 15), (15, 25), (25, 35)] {
        assert_eq!((writing.obstacle(false), writing.trouble(false)), (None, None));
        assert!(!writing.differs(&Writing::default()));
        writing.fail(Part::Service, "not now", Some(1), at(now));
        assert!(writing.withholds(Part::Service, Some(1), at(now)));
        assert_eq!(writing.next_try(at(now)), Some(at(later)));
    }
}

#[test]
fn what_fails_again_and_again_is_told_once_and_keeps_nothing_from_being_tried() {
    let told = |times| failed(Part::Engine, times).trouble(false);
    assert_eq!(told(5), None);
    let (reason, said) = told(6).unwrap();
    assert_eq!((reason, &*said), ("WriteFailed", "cannot store it (5)"));
    let (before, later) = (failed(Part::Engine, 6), failed(Part::Engine, 9));
    assert!(!later.differs(&before), "or each try would be a write of the status");
    assert_eq!(later.obstacle(false), None, "it may still come");
    assert!(!later.is_refused(Part::Engine));
    let mut written = later;
    written.take(Part::Engine);
    assert_eq!(written.trouble(false), None);
}

#[test]
fn a_refusal_comes_before_what_fails() {
    let mut writing = failed(Part::Weights, 6);
    writing.refuse(Part::Service, (Why::Quota, "exceeded quota"), Some(1), at(99));
    let (reason, said) = writing.trouble(false).unwrap();
    assert_eq!(reason, "QuotaExceeded");
    assert!(said.contains("cannot store it") && said.contains("exceeded quota"), "{said}");
    assert_eq!(writing.obstacle(false).unwrap().reason, "QuotaExceeded");
}

#[test]
fn a_refusal_is_told_on_while_the_server_fails_in_another_way() {
    let mut writing = refused(Part::Engine, "no");
    let before = writing.clone();
    writing.fail(Part::Engine, "not now", Some(1), at(1));
    assert!(writing.is_refused(Part::Engine) && !writing.differs(&before));
}

fn fields(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(who, field)| ((*who).to_owned(), (*field).to_owned())).collect()
}

#[test]
fn a_dispute_names_who_wrote_which_field_and_what_to_do() {
    let told = |others: &[(&str, &str)], times| {
        let dispute = Dispute::of(("Deployment", "m"), &fields(others), times, at(0))?;
        dispute.told(at(1)).map(str::to_owned)
    };
    let image = [("kyverno", ".spec.template.spec.containers[0].image")];
    assert_eq!(
        told(&image, 1).unwrap(),
        "somebody else changed the Deployment `m`: kyverno wrote .spec.template.spec.containers[0].image; it was put back, change the Model instead"
    );
    assert_eq!(
        told(&image, 3).unwrap(),
        "Deployment `m` is changed again and again: kyverno wrote .spec.template.spec.containers[0].image; keep it from what has the label `app.kubernetes.io/managed-by: flexinfer`. It is put back less and less often"
    );
    let replicas = told(&[("hpa", ".spec.replicas")], 9).unwrap();
    assert!(
        replicas.contains("or give the Model `flexinfer.ai/autoscaler: external`"),
        "{replicas}"
    );
    let many = [image[0]; 20];
    assert!(told(&many, 3).unwrap().contains("keep it from"), "what to do is cut off");
    assert_eq!(told(&[], 1), None);
    assert!(told(&[], 3).unwrap().contains("it is not known who"));
}

#[test]
fn what_is_deleted_again_and_again_is_told_as_that() {
    let told = |name: &str, times| {
        let dispute = Dispute::of_deletions(("Deployment", name), times, at(0))?;
        dispute.told(at(1)).map(str::to_owned)
    };
    assert_eq!(told("m", 2), None, "it is a person's remedy too");
    assert_eq!(
        told("m", 3).unwrap(),
        "Deployment `m` is deleted again and again. It is made anew each time, at most ten seconds later: delete the \
         Model instead, or keep who does it from what has the label `app.kubernetes.io/managed-by: flexinfer`; the API \
         server's audit log names them"
    );
    assert!(told(&"m".repeat(63), 3).unwrap().ends_with("names them"), "what to do is cut off");
}
