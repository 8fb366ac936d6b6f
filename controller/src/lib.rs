//! The controller: acts on the cluster. See `docs/architecture.md`.

mod leadership;
mod pages;

pub mod run;
pub mod telemetry;
