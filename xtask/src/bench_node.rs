//! `cargo xtask bench-node`: the flash loader beside plain copies, and the scheduler's extender beside one that
//! echoes, each built as it is released.

use anyhow::Result;
use clap::Args;

use crate::{bench, prerequisites, program, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Less to copy and fewer rounds: shows that it works
    #[arg(long)]
    quick: bool,
    /// Also copies 100,000 small files
    #[arg(long)]
    full: bool,
    /// End with one JSON object with the ratios and what they were made from
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(crate) fn full() -> Self {
        Self { quick: false, full: true, json: true }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    prerequisites::ensure(&prerequisites::BUILD)?;
    for copier in [prerequisites::RSYNC, prerequisites::RCLONE] {
        let name = copier.name;
        if let Err(reason) = prerequisites::ensure(&[copier]) {
            println!("{name}: skipped: {reason:#}");
        }
    }
    let packages = ["flexinfer-node", "flexinfer-controller", "flexinfer-loadtest"];
    workspace::build(&packages, bench::PROFILE)?;
    let mut measure = program::named(workspace::binary("flexinfer-loadtest", bench::PROFILE)?);
    measure.arg("node");
    if arguments.quick {
        measure.args(["--size", "256", "--rounds", "2", "--cold-rounds", "1"]);
    }
    if arguments.full {
        measure.args(["--small-files", "100000"]);
    }
    if arguments.json {
        measure.arg("--json");
    }
    program::run(&mut measure)
}
