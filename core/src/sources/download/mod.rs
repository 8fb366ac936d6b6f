//! A download as a conversation without sockets: what to ask, what an answer means, what to do next.
//!
//! [`Conversation`] finds out which files a source has and pins the commit, so that files of two
//! revisions never mix; [`Transfer`] fetches one of them, resuming what broke off. Both are told
//! what came back and say what to do; the `fetching` crate sends, writes and waits.
//! Neither ever sees the hub's token or a registry's login: a [`Request`] only says what may be sent along
//! (SEC-07).

mod conversation;
mod hub;
mod listing;
mod patience;
pub(crate) mod pattern;
mod request;
mod selection;
mod site;
mod terms;
mod transfer;
mod verdict;
mod wanted;

pub use conversation::{Conversation, Plan, Step};
pub(crate) use hub::stays_on_this_machine;
pub use hub::{BadEndpoint, Hub};
pub use listing::{Digest, RemoteFile};
pub(crate) use listing::{Listed, Listing};
pub use patience::Patience;
pub use request::{Authorization, Head, Purpose, Request, Session};
pub use selection::Selection;
pub use terms::Terms;
pub use transfer::{Body, Transfer, TransferStep};
pub(crate) use wanted::Heard;

#[cfg(test)]
mod tests;
