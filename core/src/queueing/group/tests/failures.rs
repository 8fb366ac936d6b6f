//! What is promised when an engine fails.

use super::*;

#[test]
fn queue_05_a_load_that_dies_is_told_at_once_and_tried_again_later() {
    let mut world = World::new(vec![terms("a")]);
    for attempt in 0..3_u32 {
        let waiting = world.ask("a");
        world.fail("a");
        assert_eq!(world.code(waiting), Some("activation_failed"));
        let meanwhile = world.ask("a");
        assert_eq!(world.code(meanwhile), Some("activation_failed"), "told, not queued");
        world.pass(secs(1 << attempt));
    }
    let waiting = world.ask("a");
    world.ready("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn queue_05_with_backoff_the_waiters_outlast_the_retries() {
    let backoff = Backoff { max_retries: 3, initial_wait: secs(5), max_wait: secs(30) };
    let policy = Policy { backoff: Some(backoff), ..Policy::default() };
    let mut world = World::with(policy, vec![terms("a")]);
    let waiting = world.ask("a");
    for wait in [5, 10, 20] {
        world.pass(secs(59));
        world.fail("a");
        assert!(world.code(waiting).is_none());
        world.pass(secs(wait));
    }
    world.pass(secs(59));
    world.ready("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn a_model_that_crashes_while_serving_is_started_again_for_those_who_wait() {
    let mut world = World::new(vec![Terms { slots: Some(1), ..terms("a") }]);
    let lost = world.serving("a", secs(1));
    let waiting = world.ask("a");
    world.fail("a");
    assert_eq!(world.started("a").len(), 2);
    world.finish(lost);
    world.ready("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn an_engine_that_answers_is_forgiven_its_failed_loads() {
    let mut world = World::new(vec![terms("a")]);
    for wait in [1, 2, 4] {
        world.ask("a");
        world.fail("a");
        world.pass(secs(wait));
    }
    let booking = world.serving("a", secs(1));
    world.finish(booking);
    world.pass(secs(300));
    world.gone("a");
    world.ask("a");
    world.fail("a");
    world.pass(secs(1));
    let after = world.ask("a");
    assert!(world.code(after).is_none(), "left alone for one second again, not for eight");
}
