//! The HTTP client: one pool of connections; an answer may take as long as it goes on.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use reqwest::{Certificate, Client};

/// An engine that says nothing for so long has died.
const SILENCE: Duration = Duration::from_secs(120);

/// A client that believes the authorities in the file `ca`, or the system's.
pub(super) fn client(ca: Option<&Path>) -> anyhow::Result<Client> {
    // Whoever has chosen a provider before has chosen the same one.
    let _already_chosen = rustls::crypto::ring::default_provider().install_default();
    let mut client =
        Client::builder().connect_timeout(Duration::from_secs(10)).read_timeout(SILENCE);
    if let Some(file) = ca {
        client = client.tls_certs_only(authorities(file)?);
    }
    client.build().context("the HTTP client cannot be set up")
}

fn authorities(file: &Path) -> anyhow::Result<Vec<Certificate>> {
    let read = || format!("--ca {} cannot be read", file.display());
    let text = std::fs::read(file).with_context(read)?;
    let found = Certificate::from_pem_bundle(&text).with_context(read)?;
    ensure!(!found.is_empty(), "--ca {} holds no certificate", file.display());
    Ok(found)
}
