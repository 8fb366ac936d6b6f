//! What core promises whatever happens: random sequences of events with invariants after each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on shall fail where it stands"
)]

mod election;
mod pools;
mod queueing;
mod routing;
mod scaling;
mod terms;
