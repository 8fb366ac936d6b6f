//! The acts of a GPU node, one folder for each subcommand of `flexinfer-node`. Decisions are
//! `flexinfer-core`'s.

pub mod agent;
pub mod bench;
pub mod check;
pub mod clean;
pub mod ending;
pub mod fetch;
pub mod flash;
pub mod in_root;
mod inside;
mod listening;
mod weights;

mod progress;
