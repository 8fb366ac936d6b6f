//! What a program says about itself while it runs, the same for each of ours: lines on standard error,
//! and spans for a collector.

pub mod log;
#[cfg(feature = "traces")]
pub mod traces;
