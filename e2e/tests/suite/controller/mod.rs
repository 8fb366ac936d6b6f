//! The controller on a real control plane, before engines that are processes.

mod desk;
mod leading;
mod life;
mod owning;
mod scaled_elsewhere;
mod swaps;
mod trouble;
mod unknown;

pub(crate) use desk::{Desk, FAILING_IMAGE, controller, simulated};
