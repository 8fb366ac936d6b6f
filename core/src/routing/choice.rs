//! What one file per strategy answers.

use super::key::Key;
use super::said::Said;

/// The place of an endpoint in the order in which free ones are taken: the smallest comes first.
pub type Rank = (u32, u64);

/// One strategy.
pub(super) trait Choice: Sync {
    /// The place of an endpoint with `in_flight` requests whose last turn was number `last_turn`.
    /// Where the strategy knows no better: the least loaded, and among equals the one whose turn
    /// was longest ago.
    fn rank(&self, in_flight: u32, last_turn: u64) -> Rank {
        (in_flight, last_turn)
    }

    /// The key by which requests stay together.
    fn key(&self, _said: &Said<'_>) -> Option<Key> {
        None
    }
}
