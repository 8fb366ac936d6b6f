//! What an engine is spoken to in.

use flexinfer_crds::Model;
use strum::VariantNames as _;

use super::backend_of;
use crate::backends::{Backend, Complaint, Config, Subject};

/// A protocol that engines speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum EngineProtocol {
    /// HTTP/1.1, which every engine speaks.
    #[default]
    Http1,
    /// HTTP/2 without TLS, by prior knowledge: many requests share a connection.
    H2c,
    /// HTTP/2 over TLS and nothing else.
    H2,
    /// What both sides agree on under TLS, HTTP/2 first.
    Alpn,
}

/// How an engine is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// In which protocol.
    pub protocol: EngineProtocol,
    /// The name that its certificate must be for; `None` without TLS.
    pub tls_name: Option<String>,
}

impl Spoken {
    /// How the engine of `model` is spoken to; in plain HTTP/1.1 where the Model says nothing that could be.
    pub fn to(model: &Model) -> Self {
        let config = Subject::from(model).config;
        let spoken = backend_of(model).and_then(|backend| of(backend, config));
        spoken.unwrap_or_default()
    }
}

/// `config.engineProtocol`, as far as it goes with `config.url`.
pub(super) fn of(backend: Backend, config: Config<'_>) -> Result<Spoken, Complaint> {
    let tls_name = backend.tls_name(config);
    let secured = tls_name.is_some();
    let complain = |message: String| Complaint::error("spec.config.engineProtocol", message);
    let protocol = match config.text("engineProtocol")? {
        None if secured => EngineProtocol::Alpn,
        None => EngineProtocol::Http1,
        Some(text) => text.parse().map_err(|_| {
            let known = EngineProtocol::VARIANTS.join(", ");
            complain(format!("`{text}` is not known; write one of {known}"))
        })?,
    };
    match protocol {
        EngineProtocol::H2c if secured => Err(complain(
            "h2c is HTTP/2 without TLS, and the engine's url is https; write h2".to_owned(),
        )),
        EngineProtocol::H2 | EngineProtocol::Alpn if !secured => Err(complain(
            "that is agreed on under TLS, and the engine's url is not https; write h2c for HTTP/2"
                .to_owned(),
        )),
        protocol => Ok(Spoken { protocol, tls_name }),
    }
}
