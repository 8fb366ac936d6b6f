//! The gateway in local mode before one model that already runs, under a name that it must rewrite.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Name, Target, free_address, spawn};
use crate::work::{ENGINE_MODEL, MODEL};

pub(crate) fn start(program: &Path, folder: &Path, engine: &str, threads: usize) -> Result<Target> {
    let (models, own) = (folder.join("models"), folder.join("gateway"));
    for folder in [&models, &own] {
        fs::create_dir_all(folder).context("cannot create a folder for the gateway")?;
    }
    fs::write(models.join("bench.yaml"), manifest(engine)).context("cannot write the model")?;
    let address = free_address()?;
    let mut command = Command::new(program);
    command.arg("local").arg(models).args(["--listen", &address]);
    command.args(["--admin-listen", &free_address()?, "--log-level", "warn"]);
    command.args(["--threads", &threads.to_string()]).arg("--data-dir").arg(own);
    // Its greeting belongs to people; what it warns of goes to stderr.
    let child = spawn(command.stdout(std::process::Stdio::null()))?;
    Ok(Target { name: Name::Gateway, stream_address: address.clone(), address, child })
}

fn manifest(engine: &str) -> String {
    format!(
        "apiVersion: inference.flexinfer.ai/v1alpha2
kind: Model
metadata:
  name: {MODEL}
spec:
  backend: external
  config:
    url: http://{engine}
    servedModelName: {ENGINE_MODEL}
    maxConcurrency: 10000
"
    )
}
