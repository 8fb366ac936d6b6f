//! The gateway over real sockets and processes: every test has a world of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its own functions too"
)]

mod adapters_away;
mod adapters_on_demand;
mod admin;
mod admission;
mod answers;
mod apis;
mod background;
mod bodies;
mod busy;
mod callers;
mod chunked_forms;
mod contents;
mod counting;
mod desk;
mod documents;
mod events;
mod farewells;
mod floods;
mod form_bodies;
mod forms;
mod heads;
mod hostile;
mod hostile_engines;
mod hostile_http2;
mod http2_engines;
mod https_engines;
mod lanes;
mod leaving;
mod limits;
mod lists;
mod local_engines;
mod local_hub;
mod local_supervisor;
mod local_world;
mod log_lines;
mod long_forms;
mod names;
mod pages;
mod pictures;
mod program;
mod realtime;
mod rebinding;
mod retries;
mod routing;
mod second_doors;
mod serving_adapters;
mod serving_backends;
mod serving_failures;
mod serving_files;
mod serving_leaving;
mod serving_models;
mod serving_processes;
mod serving_queues;
mod serving_quickstart;
mod serving_sessions;
mod serving_start;
mod serving_stopping;
mod serving_swaps;
mod serving_timing;
mod serving_traces;
mod serving_world;
mod sessions;
mod shares;
mod stopping;
mod streamed_answers;
mod ties;
mod tls;
mod unread_bodies;
mod uploads;
mod verbatim;
mod websockets;
mod world;
