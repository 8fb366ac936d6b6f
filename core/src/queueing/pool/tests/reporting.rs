//! What is said to the controller, and how often.

use super::*;

#[test]
fn queue_15_a_thousand_requests_for_a_cold_model_are_one_write_at_a_time() {
    let mut world = World::new(Terms { max_queue: Some(1000), slots: None, ..terms() });
    let tickets: Vec<_> = (0..1000).map(|_| world.ask()).collect();
    assert_eq!(world.reports(), [[0, 1, 1]]);
    world.act(|pool, now| pool.reported(now, false, 0.5));
    assert_eq!(world.reports().len(), 1, "a refused write is not repeated at once");
    world.pass(secs(2));
    assert_eq!(world.reports(), [[0, 1, 1], [0, 1000, 1000]]);
    world.arrived();
    world.list(&["a"]);
    world.answer("a");
    assert!(tickets.iter().all(|ticket| world.granted(*ticket).is_some()));
}

#[test]
fn traffic_that_comes_and_goes_writes_no_more_than_renewals() {
    let mut world = World::serving(terms(), &["a"]);
    for _ in 0..600 {
        let ticket = world.ask();
        world.pass(Duration::from_millis(50));
        world.finish(world.granted(ticket).expect("granted").0);
        world.pass(Duration::from_millis(50));
        world.arrived();
    }
    // A minute: the first entry, and one at every thirtieth second.
    assert!(world.reports().len() <= 3, "{:?}", world.reports());
    assert!(world.reports().iter().all(|report| report[2] == 1));
}

#[test]
fn an_idle_model_is_reported_idle_once_and_then_never_again() {
    let mut world = World::serving(terms(), &["a"]);
    let ticket = world.ask();
    world.arrived();
    world.finish(world.granted(ticket).expect("granted").0);
    for _ in 0..1000 {
        world.pass(secs(10));
        world.arrived();
    }
    let (last, count) = (world.reports().last().copied(), world.reports().len());
    assert_eq!((last, count), (Some([0, 0, 0]), 2));
}

#[test]
fn what_the_controller_waits_for_is_written_at_once() {
    let mut world = World::serving(terms(), &["a"]);
    let ticket = world.ask();
    world.arrived();
    world.pass(secs(1));
    world.act(|pool, now| pool.contend(now, true));
    assert_eq!(world.reports(), [[1, 0, 1]]);
    world.finish(world.granted(ticket).expect("granted").0);
    assert_eq!(world.reports(), [[1, 0, 1], [0, 0, 1]]);
}
