//! TLS to clients: which certificate they are shown, read from files that are followed. A change counts
//! for the next connection; files with a fault never replace a pair without. And TLS to engines: whom to believe.

mod follow;
mod pair;
mod trust;

use std::path::PathBuf;

pub use follow::Certificates;
pub use pair::TlsFault;
pub(crate) use trust::host;
pub use trust::{Trust, TrustError};

use crate::followed::Unreadable;

/// Where the certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain as PEM, the server's own certificate first (`--tls-cert`).
    pub certificate: PathBuf,
    /// The private key as PEM (`--tls-key`).
    pub key: PathBuf,
}

/// Why a gateway cannot start with its certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("the files of --tls-cert and --tls-key are needed; make them, or name others")]
    Unreadable(#[from] Unreadable),
    /// The files have a fault.
    #[error("no TLS is possible with the files of --tls-cert and --tls-key")]
    Faulty(#[from] TlsFault),
}
