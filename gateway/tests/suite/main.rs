//! The gateway's tests against real processes and sockets, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its own functions too"
)]

mod local_engines;
mod local_supervisor;
mod local_world;
