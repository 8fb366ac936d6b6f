//! The README's first command: from a clone to a served token, with nothing but a Rust toolchain.

use std::os::unix::process::CommandExt as _;

use anyhow::{Context, Result};
use clap::Args;

use crate::{prerequisites, program, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder of models to serve
    #[arg(default_value = "examples/quickstart")]
    models: std::path::PathBuf,
    /// Further flags for the gateway, after `--`
    #[arg(last = true)]
    flags: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    prerequisites::ensure(&prerequisites::BUILD)?;
    println!("Building the gateway; the first time takes a few minutes.");
    let gateway = workspace::gateway("release")?;
    // A path is meant from where the user stands; the default from the workspace's root.
    let models = arguments.models.canonicalize().unwrap_or_else(|_| arguments.models.clone());
    let mut command = program::named(&gateway);
    command.arg("local").arg(models).args(&arguments.flags);
    // The gateway takes this process's place, so that Ctrl-C and SIGTERM reach it and nothing else.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start {}", gateway.display()))
}
