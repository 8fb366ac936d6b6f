//! Which endpoint a request goes to: one file per [`Strategy`], a [`Ring`] for those that keep what
//! belongs together in one place, and the [`Roster`] that knows how busy every endpoint is.
//!
//! Choosing and booking are one step: load is counted when a slot is booked, not when an engine
//! begins to answer, and whoever was booked longest ago is first among equals. So a slow engine
//! gets no more than its share, and equals take turns.
//!
//! Guardrails. A choice costs the logarithm of the number of endpoints, never a pass over all of
//! them. The ring changes with the membership alone: an endpoint that is not ready keeps its place,
//! and its keys go to the next one until it is back.

mod choice;
mod comfy;
mod key;
mod labels;
mod least_loaded;
mod mark;
mod pins;
mod preferences;
mod prefix;
mod readers;
mod ring;
mod roster;
mod round_robin;
mod said;
mod session_affinity;
#[cfg(test)]
mod tests;
mod tie;

pub use choice::Rank;
pub use comfy::{client_id, picture, shows_file};
pub use key::{Key, Source};
pub use labels::{LabelRouting, Member};
pub use mark::{ClientNumber, Mark};
pub use pins::Pins;
pub use preferences::Preferences;
pub use readers::{IdReader, StringsReader};
pub use roster::{Roster, Wish};
pub use said::{KeyLengths, Said};
pub use tie::{
    Absence, Asked, BodyReader, KnownBy, Only, Presence, Tie, previous_response, stored_response,
};

use choice::Choice;

/// How requests are spread over the endpoints of a model: the annotation `flexinfer.ai/routing`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Strategy {
    /// Each in its turn.
    #[default]
    RoundRobin,
    /// The one with the fewest requests in flight.
    LeastLoaded,
    /// The turns of one conversation stay together.
    SessionAffinity,
    /// What begins with the same words stays together, so that an engine finds it in its cache.
    Prefix,
}

impl Strategy {
    fn choice(self) -> &'static dyn Choice {
        match self {
            Self::RoundRobin => &round_robin::RoundRobin,
            Self::LeastLoaded => &least_loaded::LeastLoaded,
            Self::SessionAffinity => &session_affinity::SessionAffinity,
            Self::Prefix => &prefix::Prefix,
        }
    }

    /// The key by which this strategy keeps a request together with others; `None` where it keeps
    /// nothing together or the request says nothing to go by.
    pub fn key(self, said: &Said<'_>) -> Option<Key> {
        self.choice().key(said)
    }

    /// Whether requests are kept together by their keys.
    pub fn is_keyed(self) -> bool {
        matches!(self, Self::SessionAffinity | Self::Prefix)
    }

    /// The order in which free endpoints are taken, for a request without a key.
    fn rank(self, in_flight: u32, last_turn: u64) -> Rank {
        self.choice().rank(in_flight, last_turn)
    }
}
