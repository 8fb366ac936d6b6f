//! The node's program over real files and sockets: every test has a world of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its own functions too"
)]

mod agent;
mod benchmark_results;
mod benchmarking;
mod benchmarking_tls;
mod clean;
mod clean_mounts;
mod fetching;
mod flash;
mod flash_interrupted;
mod flash_links;
mod flash_memory;
mod flash_peers;
mod flash_room;
mod flash_theirs;
mod flash_waiting;
mod world;
