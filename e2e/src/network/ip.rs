//! iproute2's `ip`, told many things in one run.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Carries out commands, one a line; in a new namespace, which is kept at a path, where one is given.
pub(super) async fn batch(new_namespace: Option<&Path>, commands: &str) -> io::Result<()> {
    let mut command = match new_namespace {
        Some(path) => {
            let mut command = Command::new("unshare");
            command.arg(format!("--net={}", path.display())).arg("ip");
            command
        }
        None => Command::new("ip"),
    };
    command.args(["-batch", "-"]).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(commands.as_bytes()).await?;
    }
    outcome(&child.wait_with_output().await?)
}

/// The same for where there is no runtime.
pub(super) fn batch_blocking(commands: &str) -> io::Result<()> {
    let mut command = std::process::Command::new("ip");
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(commands.as_bytes())?;
    }
    outcome(&child.wait_with_output()?)
}

fn outcome(output: &Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ip ended with {}: {}", output.status, said.trim())))
}
