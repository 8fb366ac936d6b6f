//! Programs that a person would use on a cluster, run to their end with what they print.

use std::io;
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What a program printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Whether it did what it was asked.
    pub success: bool,
    /// Results.
    pub stdout: String,
    /// Warnings and errors.
    pub stderr: String,
}

/// Runs a program on `input`. Failing is no error but a result.
pub(crate) async fn printed(command: &mut Command, input: &str) -> io::Result<Printed> {
    command.kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()).await {
            // One who refuses its arguments reads nothing; what it prints says why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written?,
        }
    }
    child.wait_with_output().await.map(Printed::from)
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        Self {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
