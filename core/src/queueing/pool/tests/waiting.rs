//! Requests that wait: what for, how long, and what they are told.

use super::*;

#[test]
fn queue_11_those_who_wait_are_told_at_once_of_a_terminal_reason() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    let failed = Standing::failed(Failure::new(Reason::ImagePullFailed, "no such image"));
    world.act(|pool, now| pool.stand(now, failed));
    assert_eq!(world.code(waiting), Some("activation_failed"));
    let late = world.ask();
    assert!(world.rejection(late).is_some_and(|told| told.retry_after().is_some()));
    world.arrived();
    world.pass(secs(1));
    assert_eq!(world.reports().last().map(|report| report[1]), Some(1), "it is still demand");
}

#[test]
fn those_behind_a_pinned_model_of_higher_priority_are_told_at_once() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    let held_by = Some(ModelId::new("default", "high"));
    world.act(|pool, now| pool.stand(now, Standing { held_by, ..standing(Phase::Pending) }));
    assert_eq!(world.code(waiting), Some("held_by_higher_priority"));
}

#[test]
fn who_was_not_served_is_told_when_the_gpu_is_free_at_the_earliest() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    let not_before = Some(world.now + secs(200));
    world.act(|pool, now| pool.stand(now, Standing { not_before, ..standing(Phase::Pending) }));
    world.pass(secs(60));
    let told = world.rejection(waiting).unwrap();
    assert_eq!((told.code(), told.retry_after()), ("activation_timeout", Some(secs(140))));
}

#[test]
fn queue_17_the_bound_holds_and_a_bound_of_zero_still_wakes() {
    let mut world = World::new(Terms { max_queue: Some(0), ..terms() });
    let first = world.ask();
    assert_eq!(world.code(first), Some("queue_full"));
    assert_eq!(world.reports(), [[0, 1, 1]]);
    world.list(&["a"]);
    world.answer("a");
    let second = world.ask();
    assert!(world.granted(second).is_some());
}

#[test]
fn queue_21_the_waiters_of_a_removed_model_are_told() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    world.act(Pool::remove);
    assert_eq!(world.code(waiting), Some("model_not_found"));
    let late = world.ask();
    assert_eq!(world.code(late), Some("model_not_found"));
    world.arrived();
    world.pass(secs(100));
    assert_eq!(world.reports().len(), 1, "nothing is said of what is gone");
}

#[test]
fn a_request_that_waited_too_long_is_told_why() {
    let mut world = World::new(terms());
    let cold = world.ask();
    world.pass(secs(60));
    assert_eq!(world.code(cold), Some("activation_timeout"));
    let mut world = World::serving(Terms { slots: Some(1), ..terms() }, &["a"]);
    world.ask();
    let second = world.ask();
    world.pass(secs(60));
    assert_eq!(world.code(second), Some("queue_timeout"));
}
#[test]
fn what_a_wait_was_spent_on_adds_up_to_the_whole() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    for (seconds, stage) in [
        (1, Stage::Queued),
        (2, Stage::Draining),
        (3, Stage::Queued),
        (1, Stage::Stopping),
        (2, Stage::LoadingWeights),
    ] {
        world.pass(secs(seconds));
        world.act(|pool, now| pool.stand(now, Standing { stage, ..standing(Phase::Pending) }));
        assert_eq!(world.pool.view().waits_for, Some((stage, world.now)));
    }
    world.pass(secs(4));
    world.list(&["a"]);
    world.answer("a");
    assert!(world.granted(waiting).is_some());
    let stages = [
        (Stage::Deciding, secs(1)),
        (Stage::Queued, secs(3)),
        (Stage::Draining, secs(3)),
        (Stage::Stopping, secs(2)),
        (Stage::LoadingWeights, secs(4)),
    ];
    let told = world.effects.iter().find_map(|effect| match effect {
        PoolEffect::Tell { notice: Notice::Ready { took, stages, .. }, .. } => Some((took, stages)),
        _ => None,
    });
    assert_eq!(told, Some((&secs(13), &stages.to_vec())));
    let view = world.pool.view();
    assert_eq!((view.last_wait, view.waits_for), (stages.to_vec(), None));
}

#[test]
fn a_wait_that_everybody_left_is_told_of_by_nobody() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    world.act(|pool, now| pool.leave(now, waiting));
    assert_eq!(world.pool.view().waits_for, None);
    world.list(&["a"]);
    world.answer("a");
    let ready = |effect: &PoolEffect| {
        matches!(effect, PoolEffect::Tell { notice: Notice::Ready { .. }, .. })
    };
    assert!(!world.effects.iter().any(ready));
}
