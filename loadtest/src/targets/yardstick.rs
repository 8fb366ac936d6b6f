//! The bare Pingora proxy of `bin/yardstick.rs`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Name, Target, free_address, spawn};

pub(crate) fn start(program: &Path, engine: &str, threads: usize) -> Result<Target> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command.args(["--listen", &address, "--upstream", engine]);
    let child = spawn(command.args(["--threads", &threads.to_string()]))?;
    Ok(Target { name: Name::Pingora, stream_address: address.clone(), address, child })
}
