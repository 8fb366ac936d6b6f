//! What is promised when a Model is edited or removed.

use super::*;

#[test]
fn queue_17_a_changed_bound_loses_nobody() {
    let mut world = World::new(vec![Terms { slots: Some(1), ..terms("a") }]);
    let tickets: Vec<_> = (0..5).map(|_| world.ask("a")).collect();
    let lowered = Terms { slots: Some(1), max_queue: Some(1), ..terms("a") };
    let effects = world.group.configure(world.now, vec![lowered]);
    world.effects.extend(effects);
    assert!(tickets.iter().all(|ticket| world.code(*ticket).is_none()));
    let late = world.ask("a");
    assert_eq!(world.code(late), Some("queue_full"));
}

#[test]
fn queue_21_the_waiters_of_a_removed_model_are_told() {
    let mut world = World::new(vec![terms("a")]);
    let waiting = world.ask("a");
    let effects = world.group.configure(world.now, vec![]);
    world.effects.extend(effects);
    assert_eq!(world.code(waiting), Some("model_not_found"));
    assert_eq!(world.stopped("a").len(), 1);
    world.gone("a");
    assert!(world.group.spent());
}

#[test]
fn an_edited_model_finishes_its_streams_and_serves_new_requests_afresh() {
    let mut world = World::new(vec![terms("a")]);
    let stream = world.serving("a", secs(1));
    let edited = Terms { generation: 2, ..terms("a") };
    let effects = world.group.configure(world.now, vec![edited]);
    world.effects.extend(effects);
    let next = world.ask("a");
    world.pass(secs(50));
    assert!(world.stopped("a").is_empty(), "a stream is never broken by an edit");
    assert!(world.granted(next).is_none());
    world.finish(stream);
    world.gone("a");
    world.ready("a");
    assert!(world.granted(next).is_some());
}

#[test]
fn an_outdated_engine_that_keeps_another_model_out_is_cut_off_at_its_drain_limit() {
    let mut world = World::new(vec![terms("a"), terms("b")]);
    let stream = world.serving("a", secs(1));
    let edited = Terms { generation: 2, ..terms("a") };
    let effects = world.group.configure(world.now, vec![edited, terms("b")]);
    world.effects.extend(effects);
    world.pass(secs(1000));
    assert!(world.stopped("a").is_empty(), "it is in nobody's way");
    world.group.policy.cold_start_timeout = secs(300);
    let waiting = world.ask("b");
    world.pass(secs(60));
    assert_eq!(world.stopped("a").len(), 1);
    world.finish(stream);
    world.gone("a");
    world.ready("b");
    assert!(world.granted(waiting).is_some());
}
