//! One model as a cluster shows it: its engine, from Deployment and pods, and its demand, from what
//! gateways report.

mod demand;
mod engine;
mod hindrance;

pub use demand::{Demand, Expiry};
pub use engine::{Engine, serving_nodes};
pub(super) use engine::{ended, ending, ready};
pub use hindrance::{Hindrance, kept_from_beginning};
pub(super) use hindrance::{unmade, unschedulable};
