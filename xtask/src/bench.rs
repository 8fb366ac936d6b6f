//! `cargo xtask bench`: builds what is compared with everything on, and lets loadtest/ compare.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::{cache, prerequisites, program, workspace};

/// Everything that optimisation offers, as in released images.
pub(crate) const PROFILE: &str = "dist";

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
    let nginx = nginx()?;
    let packages = ["--package", "flexinfer-gateway", "--package", "flexinfer-loadtest"];
    workspace::build(&packages, PROFILE)?;
    let costs = ["--package", "flexinfer-core", "--example", "routing_costs"];
    program::run(program::cargo().args(["run", "--quiet", "--profile", PROFILE]).args(costs))?;
    let mut compare = program::named(workspace::binary("flexinfer-loadtest", PROFILE)?);
    compare.arg("compare").arg("--nginx").arg(nginx);
    for (wanted, flag) in [(arguments.quick, "--quick"), (arguments.json, "--json")] {
        if wanted {
            compare.arg(flag);
        }
    }
    program::run(&mut compare)
}

/// The nginx of the machine; where there is none and apt can fetch it, its program alone, since installing the
/// package would start a server on port 80.
fn nginx() -> Result<PathBuf> {
    if let Some(nginx) = program::find("nginx") {
        return Ok(nginx);
    }
    if program::find("apt-get").is_none() || program::find("dpkg").is_none() {
        prerequisites::ensure(&[prerequisites::NGINX])?;
        return program::find("nginx").context("nginx is not on PATH");
    }
    let place = cache::kept("nginx", &["the package nginx of apt"], |place| {
        println!("Fetching nginx with apt-get, without installing it");
        let mut download = Command::new("apt-get");
        program::run(download.args(["download", "--quiet", "nginx"]).current_dir(place))
            .context("fetch the list of packages first (apt-get update), or install nginx")?;
        let package = cache::first_with_extension(place, "deb")?;
        program::run(Command::new("dpkg").arg("--extract").arg(package).arg(place))
    })?;
    Ok(place.join("usr/sbin/nginx"))
}
