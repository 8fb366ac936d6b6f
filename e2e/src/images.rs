//! The names under which this workspace's programs are images in the tests.

pub const GATEWAY: &str = "flexinfer/gateway:test";
pub const CONTROLLER: &str = "flexinfer/controller:test";
pub const NODE: &str = "flexinfer/node:test";

/// The gateway's program as an engine: its `simulate` comes before the container's arguments.
pub const SIMULATOR: &str = "flexinfer/simulator:test";
