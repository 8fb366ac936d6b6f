//! A sharing group under random events: requests, leaving clients, loads that succeed, fail or
//! hang, crashes, edits, and time. After every event the invariants of `World::check` must hold.

mod events;
mod invariants;
mod world;

use std::time::Duration;

use flexinfer_core::queueing::Backoff;
use flexinfer_core::sharing::Capacity;
use proptest::prelude::*;

use events::{Event, event};
use world::World;

fn run(capacity: Capacity, backoff: Option<Backoff>, events: Vec<Event>) {
    let mut world = World::new(capacity, backoff);
    for event in events {
        world.happen(event);
        world.check();
    }
    world.come_to_rest();
}

const BACKOFF: Backoff = Backoff {
    max_retries: 2,
    initial_wait: Duration::from_secs(1),
    max_wait: Duration::from_secs(5),
};

proptest! {
    #[test]
    fn a_group_with_one_place_keeps_its_promises(
        events in prop::collection::vec(event(), 1..150)
    ) {
        run(Capacity::One, None, events);
    }

    #[test]
    fn a_group_with_a_vram_budget_keeps_its_promises(
        events in prop::collection::vec(event(), 1..150)
    ) {
        run(Capacity::Vram(20), None, events);
    }

    #[test]
    fn a_group_that_retries_keeps_its_promises(
        events in prop::collection::vec(event(), 1..150)
    ) {
        run(Capacity::One, Some(BACKOFF), events);
    }
}
