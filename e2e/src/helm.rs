//! The real Helm, as a person would call it.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::tool::{self, Printed};

/// Helm, before a cluster or without one.
#[derive(Clone, Debug)]
pub struct Helm {
    kubeconfig: Option<PathBuf>,
    home: PathBuf,
}

impl Helm {
    /// Without a cluster, for `lint` and `template`. `home` is where it keeps what is its own.
    pub fn alone(home: &Path) -> Self {
        Self { kubeconfig: None, home: home.to_path_buf() }
    }

    /// For the cluster of a kubeconfig.
    pub(crate) fn new(kubeconfig: &Path, home: &Path) -> Self {
        Self { kubeconfig: Some(kubeconfig.to_path_buf()), home: home.to_path_buf() }
    }

    /// Runs it to its end. Failing is no error but a result.
    pub async fn run(&self, arguments: &[&str]) -> io::Result<Printed> {
        // `cargo xtask e2e` names the one that these tests are meant for.
        let program = env::var_os("FLEXINFER_HELM").unwrap_or_else(|| "helm".into());
        let mut command = Command::new(program);
        for place in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{place}_HOME"), self.home.join(place.to_lowercase()));
        }
        match &self.kubeconfig {
            Some(kubeconfig) => command.env("KUBECONFIG", kubeconfig),
            None => command.env_remove("KUBECONFIG"),
        };
        tool::printed(command.args(arguments), "").await
    }
}
