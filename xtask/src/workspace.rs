//! Where this checkout is, and where cargo puts what it builds.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::program;

/// The folder that holds the workspace's Cargo.toml.
pub(crate) fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map_or_else(|| xtask.clone(), PathBuf::from)
}

/// What `cargo metadata` says of the workspace's own packages.
pub(crate) fn metadata() -> Result<Value> {
    let mut cargo = program::cargo();
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let json = program::output(&mut cargo)?;
    serde_json::from_str(&json).context("cargo metadata did not print JSON")
}

/// The gateway binary of a profile, built if it is not there or is stale.
pub(crate) fn gateway(profile: &str) -> Result<PathBuf> {
    build(&["flexinfer-gateway"], profile)?;
    binary("flexinfer-gateway", profile)
}

/// Builds the programs of these packages in a profile.
///
/// For the tests as they were built there, with what all packages together want of the libraries: with less, the
/// libraries are compiled a second time. For anything else as each is released.
pub(crate) fn build(packages: &[&str], profile: &str) -> Result<()> {
    let mut cargo = program::cargo();
    cargo.args(["build", "--profile", profile]);
    if profile == "dev" {
        let programs = packages.iter().flat_map(|package| programs_of(package));
        cargo.arg("--workspace").args(programs.flat_map(|program| ["--bin", program]));
    } else {
        cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    }
    program::run(&mut cargo)
}

/// The programs of a package: one of its name, and those that this one starts beside itself.
fn programs_of(package: &str) -> Vec<&str> {
    let beside: &[&str] =
        if package == "flexinfer-loadtest" { &["upstream", "yardstick"] } else { &[] };
    [&[package], beside].concat()
}

/// Where cargo leaves a binary of a profile (`dev`, `release` or `dist`).
pub(crate) fn binary(name: &str, profile: &str) -> Result<PathBuf> {
    let folder = if profile == "dev" { "debug" } else { profile };
    let metadata = metadata()?;
    let target = metadata.get("target_directory").and_then(Value::as_str);
    let target = target.context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(target).join(folder).join(name))
}
