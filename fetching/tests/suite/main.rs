//! Downloads over real sockets from a hub that misbehaves as it is told.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what is not as a test says ends it; clippy does not know that all of this is a test"
)]

mod artifacts;
mod cancelling;
mod digests;
mod faults;
mod fetching;
mod hub;
mod registry;
mod sharing;
mod tokens;
mod weights;
mod world;
