//! Whether a failure means that the engine speaks another protocol than it had to be spoken to in, and which that
//! would have been.

use std::sync::LazyLock;

use flexinfer_core::effective::EngineProtocol;
use pingora_core::{Error, ErrorSource, ErrorType, ImmutStr};
use pingora_proxy::Session;
use rustls::{AlertDescription, Error as TlsError};

use crate::context::Context;
use crate::stages::send;

/// What a Model insists on that says `engineProtocol: h2`.
const INSISTED_ON: &str = "HTTP/2 (config.engineProtocol: h2)";

/// What a WebSocket's handshake goes by.
const WEBSOCKETS_WAY: &str = "HTTP/1.1, by which WebSockets go";

/// What rustls says where the other side speaks none of the protocols that were offered. Pingora hands it on as text.
static NO_COMMON_PROTOCOL: LazyLock<String> =
    LazyLock::new(|| TlsError::AlertReceived(AlertDescription::NoApplicationProtocol).to_string());

/// What an engine that answers to TLS with "none of these protocols" would have had to speak.
pub(super) fn unagreed(
    session: &Session,
    context: &Context,
    error: &Error,
) -> Option<&'static str> {
    let said = error.context.as_ref().map(ImmutStr::as_str).unwrap_or_default();
    let unagreed =
        *error.etype() == ErrorType::TLSHandshakeFailure && said.contains(&**NO_COMMON_PROTOCOL);
    let booking = context.attempt.booking.as_ref().filter(|_| unagreed)?;
    Some(match booking.served.effective.spoken.protocol {
        _ if session.downstream_session.is_upgrade_req() => WEBSOCKETS_WAY,
        EngineProtocol::H2 => INSISTED_ON,
        EngineProtocol::Http1 => "HTTP/1.1 (config.engineProtocol: http1)",
        EngineProtocol::H2c | EngineProtocol::Alpn => "HTTP/1.1 or HTTP/2",
    })
}

/// What the engine would have had to speak, if that is why there is no answer. That an engine which others go to
/// by HTTP/2 does not answer a WebSocket's handshake in HTTP/1.1 can mean nothing else.
pub(super) fn unspoken(
    session: &Session,
    context: &Context,
    error: &Error,
) -> Option<&'static str> {
    if *error.etype() == ErrorType::Custom(send::UNAGREED) {
        return Some(INSISTED_ON);
    }
    let booking = context.attempt.booking.as_ref()?;
    let protocol = booking.served.effective.spoken.protocol;
    let http2 = matches!(protocol, EngineProtocol::H2c | EngineProtocol::H2);
    let silent = matches!(error.etype(), ErrorType::ReadTimedout | ErrorType::WriteTimedout);
    let upstream = *error.esource() == ErrorSource::Upstream;
    let unanswered = context.answer.status.is_none() && upstream && !silent;
    let handshake = session.downstream_session.is_upgrade_req();
    (http2 && handshake && unanswered).then_some(WEBSOCKETS_WAY)
}
