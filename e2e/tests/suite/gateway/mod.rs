//! `flexinfer-gateway kubernetes` before a real API server.

mod away;
mod failing;
mod journey;
mod leaving;
mod serving;
mod several;
mod waking;
mod world;
