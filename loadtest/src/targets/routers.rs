//! Routers for language models, each before one worker, its metrics on and its log quiet.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Name, Setting, Target, free_address, spawn};

/// vLLM's router, in turns over its workers.
pub(crate) fn vllm(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let mut command = Command::new(program);
    command.args(["--policy", "round_robin"]);
    serve(Name::VllmRouter, command, setting)
}

/// SMG, once SGLang's model gateway, in turns over its workers.
pub(crate) fn smg(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let mut command = Command::new(program);
    command.args(["launch", "--policy", "round_robin"]);
    serve(Name::Smg, command, setting)
}

fn serve(name: Name, mut command: Command, setting: &Setting<'_>) -> Result<Target> {
    let (address, metrics) = (free_address()?, free_address()?);
    let port = |address: &str| address.rsplit_once(':').map(|(_, port)| port.to_owned());
    let port_of = |address: &str| port(address).context("an address without a port");
    command.args(["--host", "127.0.0.1", "--port", &port_of(&address)?]);
    command.args(["--prometheus-host", "127.0.0.1", "--prometheus-port", &port_of(&metrics)?]);
    command.args(["--worker-urls", &format!("http://{}", setting.engine)]);
    command.args(["--max-concurrent-requests", "20000", "--log-level", "error"]);
    command.args(["--worker-startup-check-interval", "1"]);
    // They have no flag for it.
    command.env("TOKIO_WORKER_THREADS", setting.threads.to_string());
    command.current_dir(setting.folder).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Target::new(name, address, spawn(&mut command)?))
}
