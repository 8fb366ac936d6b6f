//! The engine behind all of them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Name, Target, spawn};

pub(crate) fn start(program: &Path) -> Result<Target> {
    let mut child = spawn(Command::new(program).stdout(Stdio::piped()))?;
    let output = child.stdout.take().context("the upstream has no output")?;
    let mut address = String::new();
    BufReader::new(output).read_line(&mut address).context("the upstream said no address")?;
    let address = address.trim().to_owned();
    Ok(Target { name: Name::Direct, stream_address: address.clone(), address, child })
}
