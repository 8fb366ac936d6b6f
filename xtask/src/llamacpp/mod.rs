//! `cargo xtask test-llamacpp`: the gateway in front of a real engine. The engine and the models come from
//! Python packages, are built once, and are kept outside the checkout.

mod engine;
mod models;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;

use crate::clients::{python_test, run_against};
use crate::test::{Counts, Steps};
use crate::{prerequisites, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// A tiny model with random weights in place of SmolLM2: a second instead of a download
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    prerequisites::ensure(&needs())?;
    test(!arguments.quick, &mut Counts::default())
}

/// The same as a step of the test run.
pub(crate) fn steps(steps: &mut Steps, full: bool) {
    steps.needing("a real llama-server", &needs(), |counts| test(full, counts));
}

fn needs() -> [prerequisites::Need; 4] {
    use prerequisites::{CMAKE, COMPILER_CXX, MAKE, PYTHON};
    [COMPILER_CXX, CMAKE, MAKE, PYTHON]
}

fn test(real_model: bool, counts: &mut Counts) -> Result<()> {
    let server = engine::llama_server()?;
    let weights = if real_model { models::smollm2()? } else { models::tiny()? };
    let binary = workspace::gateway("dev")?;
    let folder = std::env::temp_dir().join(format!("flexinfer-llamacpp-{}", std::process::id()));
    let outcome = prepare(&folder, &server, &weights).and_then(|()| {
        run_against(&binary, &folder, &[], &mut python_test("llamacpp", &[])?, counts)
    });
    drop(fs::remove_dir_all(&folder));
    outcome
}

/// Writes the folder of models that the test expects: two that share a GPU, and one alone that soon sleeps.
/// Each has its own name for the same weights, so that their processes can be told apart.
fn prepare(folder: &Path, server: &Path, weights: &Path) -> Result<()> {
    fs::create_dir_all(folder).context("cannot create a folder for the models")?;
    for (name, rest) in [
        ("first", "  gpu: { shared: gpu0, swapCooldown: 0s }\n"),
        ("second", "  gpu: { shared: gpu0, swapCooldown: 0s }\n"),
        ("napping", "  serverless: { idleTimeout: 2s }\n"),
    ] {
        let own = folder.join(format!("{name}.gguf"));
        std::os::unix::fs::symlink(weights, &own).context("cannot link the weights")?;
        let manifest = format!(
            "apiVersion: inference.flexinfer.ai/v1alpha2\nkind: Model\nmetadata: {{ name: {name} }}\n\
             spec:\n  backend: llamacpp\n  source: file://{}\n{rest}  config:\n    \
             command: {}\n    contextSize: 512\n    threads: 2\n    parallel: 1\n",
            own.display(),
            server.display(),
        );
        fs::write(folder.join(format!("{name}.yaml")), manifest).context("cannot write a model")?;
    }
    Ok(())
}
