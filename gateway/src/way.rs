//! The way to an engine: where it is, what it is spoken to in, whose certificates count there, and the key that it
//! wants. Requests, probes and what is asked about adapters all go by it.

use std::net::SocketAddr;

use flexinfer_core::effective::{Effective, EngineProtocol, Spoken};
use http::HeaderValue;
use pingora_core::upstreams::peer::HttpPeer;

use crate::secrets::Secrets;
use crate::tls::{self, Trust};

/// Requests that share a connection of HTTP/2, if the engine does not want fewer.
const STREAMS: usize = 100;

/// How an engine is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) spoken: &'a Spoken,
    /// The name of the key that it knows its clients by.
    secret: Option<&'a str>,
    secrets: &'a Secrets,
}

impl<'a> Way<'a> {
    /// The way to the engine at `address` that is spoken to as `spoken` says, and wants the key `secret`.
    pub(crate) fn new(
        address: SocketAddr,
        spoken: &'a Spoken,
        secret: Option<&'a str>,
        secrets: &'a Secrets,
    ) -> Self {
        Self { address, spoken, secret, secrets }
    }

    /// The way to the engine of `model` at `address`.
    pub(crate) fn to(address: SocketAddr, model: &'a Effective, secrets: &'a Secrets) -> Self {
        Self::new(address, &model.spoken, model.api_key_secret.as_deref(), secrets)
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

    /// The same way as Pingora goes it, for a WebSocket if `websocket`.
    pub(crate) fn peer(&self, websocket: bool) -> HttpPeer {
        let name = self.spoken.tls_name.clone();
        let secured = name.is_some();
        let mut peer = HttpPeer::new(self.address, secured, name.unwrap_or_default());
        if secured {
            peer.options.ca = Some(self.trust().authorities());
        }
        let (most, least) = versions(self.spoken.protocol, websocket);
        peer.options.set_http_version(most, least);
        if most == 2 {
            peer.options.max_h2_streams = STREAMS;
        }
        peer
    }
}

/// The highest and the lowest version of HTTP that a request may go by. HTTP/2 has another way for WebSockets,
/// which hardly any engine knows: they go by HTTP/1.1.
fn versions(protocol: EngineProtocol, websocket: bool) -> (u8, u8) {
    match protocol {
        EngineProtocol::H2c | EngineProtocol::H2 if !websocket => (2, 2),
        EngineProtocol::Alpn if !websocket => (2, 1),
        _ => (1, 1),
    }
}
