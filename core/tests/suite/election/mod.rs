//! The election under random events: who asks, what finishes, what is started, stopped, fails and is
//! edited, and time. After every event the invariants of `State::check` must hold.

mod events;
mod invariants;
mod state;

use flexinfer_core::sharing::Capacity;
use proptest::prelude::*;

use events::{Event, event};
use state::State;

fn run(capacity: Capacity, events: Vec<Event>) {
    let mut state = State::new(capacity);
    for event in events {
        state.happen(&event);
        state.check();
    }
    state.come_to_be_left_alone();
    state.come_to_rest();
}

proptest! {
    #[test]
    fn an_election_for_one_place_keeps_its_rules(
        events in prop::collection::vec(event(), 1..60)
    ) {
        run(Capacity::One, events);
    }

    #[test]
    fn an_election_within_a_vram_budget_keeps_its_rules(
        events in prop::collection::vec(event(), 1..60)
    ) {
        run(Capacity::Vram(20), events);
    }
}
