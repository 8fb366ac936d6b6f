//! The gateway in local mode before one model, under a name that it must rewrite.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Name, Target, free_address, spawn};
use crate::work::{ENGINE_MODEL, MODEL};

/// Before an engine that already runs.
pub(crate) fn start(program: &Path, folder: &Path, engine: &str, threads: usize) -> Result<Target> {
    let spec = format!(
        "  backend: external
  config:
    url: http://{engine}
    servedModelName: {ENGINE_MODEL}
    maxConcurrency: 10000
"
    );
    let (target, _) = serve(program, folder, &spec, &["--threads", &threads.to_string()])?;
    Ok(target)
}

/// Before a simulated model that sleeps, and takes as long to load as `waiters` need to arrive; also the address
/// of its metrics.
pub(crate) fn asleep(program: &Path, folder: &Path, waiters: usize) -> Result<(Target, String)> {
    let spec = "  backend: simulator
  config: { loadTime: 5s, slots: 64, timeToFirstToken: 1ms, timePerToken: 0ms }
";
    let waiters = waiters.to_string();
    serve(program, folder, spec, &["--max-queue-size", &waiters, "--cold-start-timeout", "2m"])
}

fn serve(program: &Path, folder: &Path, spec: &str, flags: &[&str]) -> Result<(Target, String)> {
    let (models, own) = (folder.join("models"), folder.join("gateway"));
    for folder in [&models, &own] {
        fs::create_dir_all(folder).context("cannot create a folder for the gateway")?;
    }
    let head = "apiVersion: inference.flexinfer.ai/v1alpha2\nkind: Model";
    let manifest = format!("{head}\nmetadata: {{ name: {MODEL} }}\nspec:\n{spec}");
    fs::write(models.join("bench.yaml"), manifest).context("cannot write the model")?;
    let (address, admin) = (free_address()?, free_address()?);
    let mut command = Command::new(program);
    command.arg("local").arg(models).args(["--listen", &address, "--admin-listen", &admin]);
    command.args(["--log-level", "warn", "--data-dir"]).arg(own).args(flags);
    // Its greeting belongs to people; what it warns of goes to stderr.
    let child = spawn(command.stdout(Stdio::null()))?;
    let stream_address = address.clone();
    Ok((Target { name: Name::Gateway, address, stream_address, child }, admin))
}
