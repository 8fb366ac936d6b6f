//! The names under which this workspace's programs are images in the tests.

pub const GATEWAY: &str = "flexinfer/gateway:test";
pub const CONTROLLER: &str = "flexinfer/controller:test";
pub const NODE: &str = "flexinfer/node:test";

/// The simulated engine is a subcommand of the gateway.
pub const SIMULATOR: &str = GATEWAY;
