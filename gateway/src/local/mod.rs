//! The local platform: engines as processes on this machine, models as files in a watched folder.
//! `core` decides which engine runs; this acts.

mod engines;
mod supervise;

pub use engines::{Engines, Settings, Sink};
pub use supervise::supervise;
