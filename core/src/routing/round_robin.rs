//! Each endpoint in its turn: whoever was booked longest ago comes next. An endpoint that is full or
//! not ready loses no turn by it.

use super::choice::{Choice, Rank};

pub(super) struct RoundRobin;

impl Choice for RoundRobin {
    fn rank(&self, _in_flight: u32, last_turn: u64) -> Rank {
        (0, last_turn)
    }
}
