//! The real kubectl, as a person would call it.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// kubectl before one cluster.
#[derive(Clone, Debug)]
pub struct Kubectl {
    kubeconfig: PathBuf,
    cache: PathBuf,
}

/// What kubectl printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Whether it did what it was asked.
    pub success: bool,
    /// Results.
    pub stdout: String,
    /// Warnings and errors.
    pub stderr: String,
}

impl Kubectl {
    /// For the cluster of a kubeconfig; `cache` keeps what it learned about the cluster's kinds.
    pub(crate) fn new(kubeconfig: &Path, cache: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_path_buf(), cache: cache.to_path_buf() }
    }

    /// Runs it to its end with nothing to read. Being refused by the cluster is no error but a result.
    pub async fn run(&self, arguments: &[&str]) -> io::Result<Printed> {
        self.run_with_input(arguments, "").await
    }

    /// The same with something to read, for `apply -f -`.
    pub async fn run_with_input(&self, arguments: &[&str], input: &str) -> io::Result<Printed> {
        // `cargo xtask e2e` names the one that these tests are meant for.
        let program = env::var_os("FLEXINFER_KUBECTL").unwrap_or_else(|| "kubectl".into());
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).arg("--cache-dir").arg(&self.cache);
        command.args(arguments).kill_on_drop(true);
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
