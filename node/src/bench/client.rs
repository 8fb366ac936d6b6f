//! The HTTP client: one pool of connections; an answer may take as long as it goes on.

use std::time::Duration;

use anyhow::Context as _;

/// An engine that says nothing for so long has died.
const SILENCE: Duration = Duration::from_secs(120);

pub(super) fn client() -> anyhow::Result<reqwest::Client> {
    // Whoever has chosen a provider before has chosen the same one.
    let _already_chosen = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().connect_timeout(Duration::from_secs(10));
    client.read_timeout(SILENCE).build().context("the HTTP client cannot be set up")
}
