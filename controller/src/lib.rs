//! The controller: acts on the cluster. It watches what there is ([`world`]), asks `core` what shall
//! be, and writes the difference ([`reconcile`]). See `docs/controller.md`.

mod asking;
mod author;
mod clock;
mod leadership;
mod metrics;
mod pages;
mod queue;
mod reconcile;
mod speeds;
mod webhooks;
mod world;

pub mod run;
pub mod scheduler;
