//! How a model gets from asleep to serving: the words that platforms report an engine's life in.

mod failure;
mod report;

pub use failure::{Failure, Reason};
pub use report::{Progress, Report, Substage};
