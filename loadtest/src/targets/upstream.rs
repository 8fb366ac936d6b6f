//! The engine behind all of them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Name, Target, spawn};

pub(crate) fn start(program: &Path, delay: Duration) -> Result<Target> {
    let mut command = Command::new(program);
    command.args(["--delay", &delay.as_millis().to_string()]);
    let mut child = spawn(command.stdout(Stdio::piped()))?;
    let output = child.stdout.take().context("the upstream has no output")?;
    let mut address = String::new();
    BufReader::new(output).read_line(&mut address).context("the upstream said no address")?;
    let address = address.trim().to_owned();
    Ok(Target::new(Name::Direct, address, child))
}
