//! What is promised to a request that waits for one model.

use super::*;

#[test]
fn queue_15_one_activation_however_many_wait() {
    let mut world = World::new(vec![Terms { slots: None, ..terms("a") }]);
    let tickets: Vec<_> = (0..100).map(|_| world.ask("a")).collect();
    assert_eq!(world.started("a").len(), 1);
    world.ready("a");
    assert!(tickets.iter().all(|ticket| world.granted(*ticket).is_some()));
}

#[test]
fn waiters_go_out_in_order_at_the_pace_of_the_slots() {
    let mut world = World::new(vec![terms("a")]);
    let tickets: Vec<_> = (0..4).map(|_| world.ask("a")).collect();
    world.ready("a");
    assert!(world.granted(tickets[1]).is_some());
    assert!(world.granted(tickets[2]).is_none(), "it has two slots");
    world.finish(world.granted(tickets[0]).expect("it was granted"));
    assert!(world.granted(tickets[2]).is_some());
    assert!(world.granted(tickets[3]).is_none());
}

#[test]
fn queue_17_the_bound_holds_for_a_cold_and_for_a_warm_model() {
    let mut world = World::new(vec![Terms { slots: Some(1), max_queue: Some(10), ..terms("a") }]);
    let cold: Vec<_> = (0..30).map(|_| world.ask("a")).collect();
    let full = |world: &World, tickets: &[Ticket]| {
        tickets.iter().filter(|ticket| world.code(**ticket) == Some("queue_full")).count()
    };
    assert_eq!(full(&world, &cold), 20);
    world.ready("a");
    let warm: Vec<_> = (0..30).map(|_| world.ask("a")).collect();
    assert_eq!(full(&world, &warm), 29, "nine still wait of those that came first");
    let rejection = world.rejection(warm[29]).expect("it was refused");
    assert!(rejection.retry_after().is_some());
}

#[test]
fn queue_17_a_bound_of_zero_still_wakes_a_cold_model() {
    let mut world = World::new(vec![Terms { max_queue: Some(0), ..terms("a") }]);
    let first = world.ask("a");
    assert_eq!(world.code(first), Some("queue_full"));
    assert_eq!(world.started("a").len(), 1);
    world.ready("a");
    let second = world.ask("a");
    assert!(world.granted(second).is_some());
}

#[test]
fn a_client_that_leaves_frees_its_place_and_its_demand() {
    let mut world = World::new(vec![Terms { max_queue: Some(1), ..terms("a") }]);
    let first = world.ask("a");
    let effects = world.group.leave(world.now, first);
    world.effects.extend(effects);
    let second = world.ask("a");
    assert!(world.code(second).is_none());
    world.ready("a");
    assert!(world.granted(first).is_none());
    assert!(world.granted(second).is_some());
}

#[test]
fn a_request_that_waited_too_long_is_told_and_its_load_goes_on() {
    let mut world = World::new(vec![terms("a")]);
    let first = world.ask("a");
    world.pass(secs(60));
    assert_eq!(world.code(first), Some("activation_timeout"));
    assert_eq!(world.phase("a"), Phase::Loading);
    let retry = world.ask("a");
    world.pass(secs(5));
    world.ready("a");
    assert!(world.granted(retry).is_some());
    assert_eq!(world.started("a").len(), 1, "the retry joined the load");
}

#[test]
fn a_load_known_to_outlast_the_deadline_is_begun_and_said_so() {
    let mut world = World::new(vec![terms("a")]);
    let first = world.serving("a", secs(50));
    world.finish(first);
    world.pass(secs(400));
    world.gone("a");
    let short = Terms { cold_start_timeout: Some(secs(20)), generation: 1, ..terms("a") };
    world.group.policy.queue_timeout = secs(20);
    let effects = world.group.configure(world.now, vec![short]);
    world.effects.extend(effects);
    let hopeless = world.ask("a");
    assert_eq!(world.code(hopeless), Some("not_before_deadline"));
    let rejection = world.rejection(hopeless).expect("it was refused");
    assert_eq!(rejection.retry_after(), Some(secs(50)));
    assert_eq!(world.phase("a"), Phase::Loading);
}

#[test]
fn queue_20_every_activation_of_twenty_serves_its_request() {
    let mut world = World::new(vec![terms("a")]);
    for _ in 0..20 {
        let booking = world.serving("a", secs(1));
        world.finish(booking);
        world.pass(secs(300));
        assert_eq!(world.phase("a"), Phase::Stopping);
        world.gone("a");
        assert_eq!(world.phase("a"), Phase::Idle);
    }
    assert_eq!(world.started("a").len(), 20);
}

#[test]
fn queue_09_a_request_at_the_moment_of_sleep_is_served() {
    let mut world = World::new(vec![terms("a")]);
    let booking = world.serving("a", secs(1));
    world.finish(booking);
    world.pass(secs(300));
    let late = world.ask("a");
    assert!(world.granted(late).is_none(), "its engine is ending");
    world.gone("a");
    world.ready("a");
    assert!(world.granted(late).is_some());
}

#[test]
fn a_preloaded_model_stays_up_until_it_was_used_once() {
    let mut world = World::new(vec![Terms { preload: true, ..terms("a") }]);
    assert_eq!(world.started("a").len(), 1);
    world.ready("a");
    world.pass(secs(10_000));
    assert_eq!(world.phase("a"), Phase::Ready);
    let used = world.ask("a");
    world.finish(world.granted(used).expect("it serves"));
    world.pass(secs(300));
    assert_eq!(world.phase("a"), Phase::Stopping);
}

#[test]
fn queue_02_a_booking_of_a_client_that_left_is_given_back() {
    let mut world = World::new(vec![Terms { slots: Some(1), ..terms("a") }]);
    let booking = world.serving("a", secs(1));
    let next = world.ask("a");
    world.finish(booking);
    let unclaimed = world.granted(next).expect("it was granted as its client left");
    let effects = world.group.leave(world.now, next);
    world.effects.extend(effects);
    world.finish(unclaimed);
    world.finish(unclaimed);
    let after = world.ask("a");
    assert!(world.granted(after).is_some());
    assert_eq!(world.group.view(world.now)[0].in_flight, 1);
}
