//! Every decision FlexInfer makes, and none of its acts.
//!
//! Nothing here reads a clock, a file, a socket, the environment or a die: time and randomness are
//! passed in, and what shall happen is returned as a value. Local mode, the cluster gateway and the
//! controller call the same functions, so a model behaves alike wherever it is served.

pub mod ids;
pub mod moment;
pub mod rejection;

pub mod manifest;

pub mod backends;
pub mod cors;
pub mod effective;
pub mod hosts;
pub mod sources;

pub mod admission;
pub mod judging;

pub mod hardware;

pub mod fleet;
pub mod openai;
pub mod rewriting;

pub mod callers;
pub mod limits;
mod listed;

pub mod activation;
pub mod loading;
pub mod measuring;
pub mod placement;
pub mod planning;
pub mod queueing;
pub mod retrying;
pub mod routing;
pub mod scaling;
pub mod sharing;

#[cfg(test)]
mod tests;
