//! Programs built once from their Go modules: neither Python's registry nor Debian has them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{cache, prerequisites, program};

/// A program that a Go module makes.
pub(super) struct GoProgram {
    name: &'static str,
    module: &'static str,
    /// What is built, and how long that takes.
    told: &'static str,
}

pub(super) const HELM: GoProgram = GoProgram {
    name: "helm",
    module: "helm.sh/helm/v4/cmd/helm@v4.3.1",
    told: "Helm: about 4 minutes of one core",
};

/// A real registry is in it.
pub(super) const CRANE: GoProgram = GoProgram {
    name: "crane",
    module: "github.com/google/go-containerregistry/cmd/crane@v0.22.1",
    told: "a registry: half a minute of one core",
};

impl GoProgram {
    /// Where it lies, built if this machine has not built this version before.
    pub(super) fn path(&self) -> Result<PathBuf> {
        prerequisites::ensure(&[prerequisites::GO])?;
        let go = program::output(Command::new("go").arg("version"))?;
        let place = cache::kept(self.name, &[self.module, go.trim()], |place| {
            println!("Building {}, once", self.told);
            let mut go = Command::new("nice");
            go.args(["-n", "19", "go", "install", "-trimpath", "-ldflags", "-s -w", self.module]);
            program::run(go.env("GOBIN", place).env("CGO_ENABLED", "0"))
        })?;
        Ok(place.join(self.name))
    }
}
