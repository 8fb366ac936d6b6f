//! What is promised when models take turns.

use super::*;

#[test]
fn queue_17_a_bound_of_zero_still_swaps_a_cold_model_in() {
    let mut world = World::new(vec![terms("a"), Terms { max_queue: Some(0), ..terms("b") }]);
    let used = world.serving("a", secs(1));
    let refused = world.ask("b");
    assert_eq!(world.code(refused), Some("queue_full"));
    world.pass(secs(1));
    world.finish(used);
    assert_eq!(world.stopped("a").len(), 1, "the demand outlives the request that made it");
    world.gone("a");
    world.ready("b");
    let retry = world.ask("b");
    assert!(world.granted(retry).is_some());
}

#[test]
fn a_demand_without_a_request_is_forgotten_in_time() {
    let mut world = World::new(vec![terms("a"), Terms { max_queue: Some(0), ..terms("b") }]);
    world.serving("a", secs(1));
    world.ask("b");
    world.pass(secs(60));
    let next = world.ask("a");
    assert!(world.granted(next).is_some(), "a yields no longer");
}

#[test]
fn queue_18_a_swap_lets_the_leaving_model_finish() {
    let mut world = World::new(vec![terms("a"), terms("b")]);
    let stream = world.serving("a", secs(1));
    world.pass(secs(10));
    let waiting = world.ask("b");
    world.pass(secs(1));
    let behind = world.ask("a");
    world.pass(secs(30));
    assert!(world.stopped("a").is_empty(), "a is streaming");
    assert!(world.granted(behind).is_none(), "a's new request queues behind b's");
    world.finish(stream);
    assert_eq!(world.stopped("a").len(), 1);
    assert!(world.started("b").is_empty(), "b starts when a is gone");
    world.gone("a");
    world.ready("b");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn what_a_swap_keeps_requests_waiting_for_is_told_by_its_phases() {
    let mut world = World::new(vec![
        Terms { swap_cooldown: secs(20), ..terms("a") },
        Terms { priority: 200, ..terms("b") },
        terms("c"),
    ]);
    let swap = |world: &World, name: &str| {
        let view = world.group.view(world.now);
        view.into_iter().find(|member| member.id == id(name)).expect("it is a member").last_swap
    };
    let stream = world.serving("a", secs(1));
    assert_eq!(swap(&world, "a"), None, "it took nobody's place");
    world.pass(secs(10));
    world.ask("b");
    world.pass(secs(3));
    world.ask("b");
    world.pass(secs(4));
    world.finish(stream);
    world.pass(secs(2));
    world.gone("a");
    let waited = SwapWait { queued: secs(0), draining: secs(7), stopping: secs(2) };
    assert_eq!(swap(&world, "b"), Some(waited));
    let told = |notice: &Notice| *notice == Notice::Waking { waiting: 2, swap: Some(waited) };
    assert!(world.told(told));
}

#[test]
fn queue_18_a_higher_one_waits_for_the_drain_limit_at_most() {
    let patient = Some(secs(120));
    let high = Terms { priority: 200, cold_start_timeout: patient, ..terms("high") };
    let mut world = World::new(vec![terms("low"), high]);
    let stream = world.serving("low", secs(1));
    world.pass(secs(10));
    world.ask("high");
    assert_eq!(world.phase("low"), Phase::Draining);
    world.pass(secs(59));
    assert!(world.stopped("low").is_empty());
    world.pass(secs(1));
    assert_eq!(world.stopped("low").len(), 1);
    assert!(world.told(|notice| *notice == Notice::CutOff { in_flight: 1 }));
    world.finish(stream);
    world.gone("low");
    assert_eq!(world.started("high").len(), 1);
}

#[test]
fn a_drain_is_called_off_when_the_one_it_was_for_has_left() {
    let mut world = World::new(vec![terms("low"), Terms { priority: 200, ..terms("high") }]);
    world.serving("low", secs(1));
    let high = world.ask("high");
    assert_eq!(world.phase("low"), Phase::Draining);
    let effects = world.group.leave(world.now, high);
    world.effects.extend(effects);
    assert_eq!(world.phase("low"), Phase::Ready);
    let next = world.ask("low");
    assert!(world.granted(next).is_some());
}

#[test]
fn a_lower_one_behind_a_pinned_higher_one_is_told_at_once() {
    let high = Terms { priority: 200, warmth: Warmth::Pinned, ..terms("high") };
    let mut world = World::new(vec![high, terms("low")]);
    world.ready("high");
    let low = world.ask("low");
    assert_eq!(world.code(low), Some("held_by_higher_priority"));
}

#[test]
fn two_equals_asked_in_turn_just_work() {
    let mut world = World::new(vec![terms("a"), terms("b")]);
    let first = world.serving("a", secs(2));
    world.finish(first);
    for (next, leaving) in [("b", "a"), ("a", "b"), ("b", "a")] {
        let ticket = world.ask(next);
        world.pass(secs(2));
        world.gone(leaving);
        world.pass(secs(2));
        world.ready(next);
        world.finish(world.granted(ticket).expect("it is served"));
    }
}
