//! Against a real Kubernetes control plane. `cargo xtask e2e` gives these tests what they need.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod chart;
mod cluster;
mod controller;
mod crds;
mod faults;
mod gateway;
mod journey;
mod kubelet;
mod line;
mod machine;
mod middleman;
mod network;
mod nodes;
mod objects;
mod owned;
mod pretence;
mod rights;
mod scale;
mod scheduler;
mod shared;
mod volumes;
mod webhooks;
