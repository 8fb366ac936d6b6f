//! `flexinfer-node agent` on nodes made of fake tools, a fake library, fake trees of `/sys`, a fake API
//! server and fake metadata servers. A real API server takes its place in the tests of the cluster.

pub(crate) mod api_server;
mod cluster;
mod frugal;
mod metadata;
mod nvml;
mod spot;
mod tools;
mod world;
