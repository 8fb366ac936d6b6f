//! What a node's hardware is, read from what tools, drivers and clouds say about it.
//!
//! Nothing here runs a tool or opens a file: texts and listings are passed in, and what shall be written on
//! the node is returned as a value. The rules that must not break:
//!
//! - An answer that cannot be understood is a [`ProbeFailure`], never "no GPUs".
//! - What a source does not say stays unknown (`None`); it is neither zero nor guessed.
//! - A GPU that stopped answering is a lost GPU, not a smaller node: see [`knowledge`].

pub mod allocatable;
pub mod amd;
pub mod engines;
pub mod intel;
pub mod knowledge;
pub mod marks;
pub mod nvidia;
pub mod spot;
pub mod sysfs;

mod choice;
mod failure;
mod gpu;
mod product;
mod reading;

#[cfg(test)]
mod tests;

pub use choice::{Representative, representative, spoken_for};
pub use failure::ProbeFailure;
pub use gpu::{Finding, Gpu, Memory, Partition, Partitioning, Survey};
pub use product::product_label;
