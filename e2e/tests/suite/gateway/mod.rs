//! `flexinfer-gateway kubernetes` before a real API server.

mod adapters;
mod away;
mod cold;
mod failing;
mod first_byte;
mod journey;
mod leaving;
mod quiet;
mod serving;
mod several;
mod swapping;
mod waking;
mod world;

pub(crate) use world::{BOUND, Gateway, Site, ask, ask_for_a_stream, code, get, start};
