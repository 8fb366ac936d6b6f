//! What an engine is spoken to in.

use strum::VariantNames as _;

use crate::backends::{Complaint, Config};

/// A protocol that engines speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum EngineProtocol {
    /// HTTP/1.1, which every engine speaks.
    #[default]
    Http1,
    /// HTTP/2 without TLS, by prior knowledge: many requests share a connection.
    H2c,
}

/// `config.engineProtocol`.
pub(super) fn of(config: Config<'_>) -> Result<Option<EngineProtocol>, Complaint> {
    let Some(text) = config.text("engineProtocol")? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let known = EngineProtocol::VARIANTS.join(" or ");
        let message = format!("`{text}` is not known; write {known}");
        Complaint::error("spec.config.engineProtocol", message)
    })
}
