//! The controller on a real control plane, before engines that are processes.

mod artifacts;
mod contested;
mod deleting;
mod desk;
mod hub;
mod leading;
mod life;
mod owning;
mod pressure;
mod progress;
mod registry;
mod replicas_on_claims;
mod scaled_elsewhere;
mod scaling;
mod swaps;
mod trouble;
mod unknown;
mod weights;
mod weights_held_up;
mod weights_refused;

pub(crate) use desk::{Desk, FAILING_IMAGE, controller, simulated};
pub(crate) use hub::FakeHub;
