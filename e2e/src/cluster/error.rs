//! Why a cluster did not come up.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use kube::config::KubeconfigError;

use crate::NetworkError;

/// Why a cluster did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "KUBEBUILDER_ASSETS is not set: run the tests by `cargo xtask e2e`, or set it to the folder that \
         `cargo xtask e2e build` prints"
    )]
    NoPrograms,
    #[error("cannot start {}: the folder that KUBEBUILDER_ASSETS names must hold it", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("cannot {act}")]
    Prepare { act: String, source: io::Error },
    #[error("cannot make the cluster's certificates")]
    Certificates(#[from] rcgen::Error),
    #[error("cannot read the kubeconfig that was just written")]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("cannot make a client for the new cluster")]
    Client(#[from] kube::Error),
    #[error("{program} ended ({status}); the last it said:\n{said}")]
    Ended { program: &'static str, status: String, said: String },
    #[error("{awaited} was not ready after {patience:?}")]
    Late { awaited: &'static str, patience: Duration, source: kube::Error },
}

impl StartError {
    pub(super) fn prepare(act: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let act = act.into();
        |source| Self::Prepare { act, source }
    }
}
