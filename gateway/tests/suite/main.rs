//! The gateway's tests against real processes and sockets, in one binary.

mod local_engines;
mod local_supervisor;
mod local_world;
