//! A download as a conversation without sockets: what to ask, what an answer means, what to do next.
//!
//! [`Conversation`] finds out which files a source has and pins the commit, so that files of two
//! revisions never mix; [`Transfer`] fetches one of them, resuming what broke off. Both are told
//! what came back and say what to do; the `fetching` crate sends, writes and waits.
//! Neither ever sees the token: a [`Request`] only says whether it may be sent along (SEC-07).

mod conversation;
mod hub;
mod listing;
mod patience;
pub(crate) mod pattern;
mod request;
mod selection;
mod transfer;
mod verdict;

pub use conversation::{Conversation, Plan, Step};
pub use hub::{BadEndpoint, Hub};
pub use listing::{Digest, RemoteFile};
pub use patience::Patience;
pub use request::{Head, Purpose, Request};
pub use selection::Selection;
pub use transfer::{Body, Transfer, TransferStep};

#[cfg(test)]
mod tests;
