//! The real Helm, built once from its Go module: neither Python's registry nor Debian has it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{cache, prerequisites, program};

const MODULE: &str = "helm.sh/helm/v4/cmd/helm@v4.3.1";

/// Where it lies, built if this machine has not built this version before.
pub(super) fn program() -> Result<PathBuf> {
    prerequisites::ensure(&[prerequisites::GO])?;
    let go = program::output(Command::new("go").arg("version"))?;
    let place = cache::kept("helm", &[MODULE, go.trim()], |place| {
        println!("Building Helm: about 4 minutes of one core, once");
        let mut go = Command::new("nice");
        go.args(["-n", "19", "go", "install", "-trimpath", "-ldflags", "-s -w", MODULE]);
        program::run(go.env("GOBIN", place).env("CGO_ENABLED", "0"))
    })?;
    Ok(place.join("helm"))
}
