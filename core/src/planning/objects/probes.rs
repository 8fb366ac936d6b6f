//! How the cluster asks an engine. Starting up may take as long as the backend's start-up limit; after that an
//! engine that does not answer gets no new requests for as long as one request may take. There is no liveness
//! probe: an engine that works at its limit answers late, and killing it loses what it serves; one that died
//! ends by itself.

use std::time::Duration;

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe as Asked, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::backends::Probe;

/// The name of the engine's port.
pub(super) const PORT: &str = "http";

/// Seconds between two questions while the engine starts: a request may wait for the answer.
const STARTING: u32 = 2;
/// Seconds between two questions while it serves.
const SERVING: u32 = 5;
/// Seconds that one answer may take.
const PATIENCE: i32 = 5;

/// Asks until the engine serves, for `limit` at most.
pub(super) fn startup(probe: &Probe, limit: Duration) -> Asked {
    asked(probe, STARTING, limit)
}

/// Asks whether it still serves; `silence` is how long it may be too busy to answer.
pub(super) fn readiness(probe: &Probe, silence: Duration) -> Asked {
    asked(probe, SERVING, silence)
}

fn asked(probe: &Probe, period: u32, limit: Duration) -> Asked {
    let failures = limit.as_secs().div_ceil(u64::from(period)).max(1);
    let mut asked = Asked {
        period_seconds: i32::try_from(period).ok(),
        timeout_seconds: Some(PATIENCE),
        failure_threshold: Some(i32::try_from(failures).unwrap_or(i32::MAX)),
        ..Asked::default()
    };
    let port = IntOrString::String(PORT.to_owned());
    match probe {
        Probe::Http { path, .. } => {
            asked.http_get =
                Some(HTTPGetAction { path: Some(path.clone()), port, ..HTTPGetAction::default() });
        }
        Probe::Tcp => asked.tcp_socket = Some(TCPSocketAction { port, host: None }),
    }
    asked
}
