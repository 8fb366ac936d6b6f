//! The controller on a real control plane, before engines that are processes.

mod desk;
mod leading;
mod life;
mod owning;
mod swaps;
mod trouble;

pub(crate) use desk::{Desk, FAILING_IMAGE, controller, simulated};
