//! Where pods should run: what the scheduler knows of nodes and of how fast models are on them.

pub mod benchmarks;
