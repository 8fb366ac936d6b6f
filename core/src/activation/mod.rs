//! How a model gets from asleep to serving: the words that platforms report an engine's life in.

mod failure;
mod report;
mod same_engine;
mod share;
mod stage;
mod standing;

pub use failure::{Failure, Reason};
pub use report::{Progress, Report, Substage};
pub use same_engine::same_engine;
pub use share::{Share, bytes_in_words};
pub use stage::{Place, Stage};
pub use standing::Standing;
