//! `cargo xtask bench`: builds what is compared with everything on, and lets loadtest/ compare.

use anyhow::{Context, Result};
use clap::Args;

use crate::{prerequisites, program, workspace};

/// Everything that optimisation offers, as in released images.
const PROFILE: &str = "dist";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Short rounds: shows that it works and the order of things, not the last tenth
    #[arg(long)]
    quick: bool,
    /// End with one JSON object with the ratios and what they were made from
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(crate) fn quick() -> Self {
        Self { quick: true, json: false }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    prerequisites::ensure(&prerequisites::BUILD)?;
    prerequisites::ensure(&[prerequisites::NGINX])?;
    let nginx = program::find("nginx").context("nginx is not on PATH")?;
    let packages = ["--package", "flexinfer-gateway", "--package", "flexinfer-loadtest"];
    workspace::build(&packages, PROFILE)?;
    let mut compare = program::named(workspace::binary("flexinfer-loadtest", PROFILE)?);
    compare.arg("compare").arg("--nginx").arg(nginx);
    for (wanted, flag) in [(arguments.quick, "--quick"), (arguments.json, "--json")] {
        if wanted {
            compare.arg(flag);
        }
    }
    program::run(&mut compare)
}
