//! The real kubectl, as a person would call it.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::tool::{self, Printed};

/// kubectl before one cluster.
#[derive(Clone, Debug)]
pub struct Kubectl {
    kubeconfig: PathBuf,
    cache: PathBuf,
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
        tool::printed(command.args(arguments), input).await
    }
}
