//! `cargo xtask bench`: builds what is compared with everything on, and lets loadtest/ compare.

use anyhow::{Context, Result};
use clap::Args;

use crate::{others, prerequisites, program, workspace};

/// Everything that optimisation offers, as in released images.
pub(crate) const PROFILE: &str = "dist";

/// Streams at once: as many as a busy gateway of a team has.
const STREAMS: &str = "2000";

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
    workspace::build(&["flexinfer-gateway", "flexinfer-loadtest"], PROFILE)?;
    let mut compare = program::named(workspace::binary("flexinfer-loadtest", PROFILE)?);
    compare.args(["compare", "--everything", "--with", &routing_costs()?]);
    for other in &others::PROXIES {
        if let Some(program) = other.get() {
            compare.arg(other.flag).arg(program);
        }
    }
    if arguments.quick {
        compare.arg("--quick");
    } else {
        compare.args(["--streams", STREAMS]);
    }
    if arguments.json {
        compare.arg("--json");
    }
    program::run(&mut compare)
}

/// Prints what routing costs, and gives its closing line: one JSON object.
fn routing_costs() -> Result<String> {
    let mut costs = program::cargo();
    costs.args(["run", "--quiet", "--profile", PROFILE, "--package", "flexinfer-core"]);
    let told = program::output(costs.args(["--example", "routing_costs"]))?;
    let (lines, figures) =
        told.trim_end().rsplit_once('\n').context("routing_costs ends with no figures")?;
    println!("{lines}");
    Ok(figures.to_owned())
}
