//! The authorities that engines' certificates are signed by, as Pingora takes them for a connection.

use std::sync::Arc;

use pingora_core::utils::tls::{WrappedX509, parse_x509};

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Authorities(pub(crate) Arc<[WrappedX509]>);

impl Authorities {
    /// Those with these certificates (DER), all of which can be parsed: Pingora panics over any other.
    pub(crate) fn of<'a>(certificates: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let wrapped = |certificate: &[u8]| WrappedX509::new(certificate.to_vec(), parse_x509);
        Self(certificates.into_iter().map(wrapped).collect())
    }
}
