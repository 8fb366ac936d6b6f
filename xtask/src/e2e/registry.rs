//! A real registry: the one in `crane`, built once from its Go module.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{cache, prerequisites, program};

const MODULE: &str = "github.com/google/go-containerregistry/cmd/crane@v0.22.1";

/// Where it lies, built if this machine has not built this version before.
pub(super) fn program() -> Result<PathBuf> {
    prerequisites::ensure(&[prerequisites::GO])?;
    let go = program::output(Command::new("go").arg("version"))?;
    let place = cache::kept("crane", &[MODULE, go.trim()], |place| {
        println!("Building a registry: half a minute of one core, once");
        let mut go = Command::new("nice");
        go.args(["-n", "19", "go", "install", "-trimpath", "-ldflags", "-s -w", MODULE]);
        program::run(go.env("GOBIN", place).env("CGO_ENABLED", "0"))
    })?;
    Ok(place.join("crane"))
}
