//! The engine over real sockets: what a client of each API sees, and what it sees when something is made
//! to go wrong.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking, also in what several tests share"
)]

mod apis;
mod chat;
mod client;
mod comfyui;
mod faults;
mod life;
mod other_apis;
mod program;
mod realtime;
