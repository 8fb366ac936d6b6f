//! Strategies as a whole: where keys are found, and what a roster does with them.

mod keys;
mod random;
mod roster;

use std::net::SocketAddr;

use super::{Key, Roster, Source, Strategy, Wish};

fn endpoint(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 8000))
}

/// `count` open endpoints.
fn roster(strategy: Strategy, count: u8, slots: Option<u32>) -> Roster<SocketAddr> {
    let mut roster = Roster::new(strategy, slots);
    roster.set_members((0..count).map(endpoint));
    (0..count).for_each(|number| roster.set_open(&endpoint(number), true));
    roster
}

fn session(name: &str) -> Wish<SocketAddr> {
    Wish { key: Some(Key::new(Source::SessionHeader, name)), ..Wish::default() }
}
