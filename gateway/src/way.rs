//! The way to an engine: where it is, what it is spoken to in, whose certificates count there, and the key that it
//! wants. Requests, probes and what is asked about adapters all go by it.

use std::net::SocketAddr;

use flexinfer_core::effective::{Effective, Spoken};
use http::HeaderValue;

use crate::secrets::{Secret, Secrets};
use crate::tls::{self, Trust};

/// How an engine is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) spoken: &'a Spoken,
    /// The name of the key that it knows its clients by.
    secret: Option<Secret<'a>>,
    secrets: &'a Secrets,
}

impl<'a> Way<'a> {
    /// The way to the engine at `address` that is spoken to as `spoken` says, and wants the key `secret`.
    pub(crate) fn new(
        address: SocketAddr,
        spoken: &'a Spoken,
        secret: Option<Secret<'a>>,
        secrets: &'a Secrets,
    ) -> Self {
        Self { address, spoken, secret, secrets }
    }

    /// The way to the engine of `model` at `address`.
    pub(crate) fn to(address: SocketAddr, model: &'a Effective, secrets: &'a Secrets) -> Self {
        let namespace = &*model.id.namespace;
        let secret = model.api_key_secret.as_deref().map(|name| Secret { namespace, name });
        Self::new(address, &model.spoken, secret, secrets)
    }

    /// What it wants to know its clients by. Looked up each time: a changed key counts.
    pub(crate) fn key(&self) -> Option<HeaderValue> {
        self.secrets.bearer(self.secret?)
    }

    /// Whose certificates are believed, where it is spoken to by TLS.
    pub(crate) fn trust(&self) -> &'a Trust {
        self.secrets.trust()
    }

    /// What it is called in requests.
    pub(crate) fn host(&self) -> String {
        tls::host(self.address, self.spoken)
    }
}
