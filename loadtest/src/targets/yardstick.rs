//! The bare Pingora proxy of `bin/yardstick.rs`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Name, Setting, Target, free_address, spawn};

pub(crate) fn start(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command.args(["--listen", &address, "--upstream", setting.engine]);
    let child = spawn(command.args(["--threads", &setting.threads.to_string()]))?;
    Ok(Target::new(Name::Pingora, address, child))
}
