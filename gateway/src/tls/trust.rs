//! TLS to engines that somebody else runs: whose certificates are believed, and what such an engine is called.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flexinfer_core::effective::{EngineProtocol, Spoken};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::warn;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::server::Authorities;

/// The port that https means where none is said.
const USUAL: u16 = 443;

/// Whose signature under an engine's certificate counts: the system's authorities, or those of a file in
/// their place.
#[derive(Debug, Default)]
pub struct Trust {
    /// The system's are read when the first such engine is asked, since most gateways have none.
    believed: OnceLock<Believed>,
}

/// The authorities, for connections of ours and for Pingora's.
#[derive(Debug)]
struct Believed {
    config: Arc<ClientConfig>,
    authorities: Authorities,
}

/// Why a file of authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read, or is no PEM.
    #[error("cannot read the certificates of --engine-ca {}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        problem: pem::Error,
    },
    /// It has none.
    #[error("--engine-ca {} holds no certificate", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// One of them is none.
    #[error("certificate {position} of --engine-ca {} cannot be read", file.display())]
    Faulty {
        /// The file.
        file: PathBuf,
        /// Its place, counted from 1.
        position: usize,
    },
}

impl Trust {
    /// The authorities in `file` (`--engine-ca`); without one the system's.
    pub fn new(file: Option<&Path>) -> Result<Self, TrustError> {
        let believed = OnceLock::new();
        if let Some(file) = file {
            let unreadable = |problem| TrustError::Unreadable { file: file.to_path_buf(), problem };
            let found: Vec<_> = CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect)
                .map_err(unreadable)?;
            if found.is_empty() {
                return Err(TrustError::Empty { file: file.to_path_buf() });
            }
            if let Some(before) = found.iter().position(|certificate| !readable(certificate)) {
                return Err(TrustError::Faulty { file: file.to_path_buf(), position: before + 1 });
            }
            believed.get_or_init(|| Believed::new(&found));
        }
        Ok(Self { believed })
    }

    fn believed(&self) -> &Believed {
        self.believed.get_or_init(|| Believed::new(&of_the_system()))
    }

    /// The authorities, for connections of Pingora's.
    pub(crate) fn authorities(&self) -> Authorities {
        self.believed().authorities.clone()
    }

    /// Makes `stream` a connection to the engine `name`, with a protocol agreed on where `wanted` leaves one to
    /// be.
    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        name: &str,
        wanted: EngineProtocol,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let mut config = ClientConfig::clone(&self.believed().config);
        let offered: &[&[u8]] = match wanted {
            EngineProtocol::Http1 => &[b"http/1.1"],
            EngineProtocol::H2 => &[b"h2"],
            EngineProtocol::H2c | EngineProtocol::Alpn => &[b"h2", b"http/1.1"],
        };
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

impl Believed {
    /// Those whose certificates these are, all of which are readable.
    #[expect(clippy::expect_used, reason = "both versions are ring's")]
    fn new(certificates: &[CertificateDer<'static>]) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows the versions that rustls defaults to")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let authorities = Authorities::of(certificates.iter().map(AsRef::as_ref));
        Self { config: Arc::new(config), authorities }
    }
}

/// The system's authorities. What is wrong with some of them is told once, and does not matter to the others.
fn of_the_system() -> Vec<CertificateDer<'static>> {
    let mut found = rustls_native_certs::load_native_certs();
    let all = found.certs.len();
    found.certs.retain(readable);
    let unreadable = found.errors.len() + all - found.certs.len();
    let first = found.errors.first().map_or_else(|| "no certificate".into(), ToString::to_string);
    if found.certs.is_empty() {
        warn!(unreadable, first, "the system has no authority to believe; name one by --engine-ca");
    } else if unreadable > 0 {
        warn!(unreadable, first, "some of the system's authorities cannot be read");
    }
    found.certs
}

/// Whether both that will read it can: one that cannot would keep Pingora from all others.
fn readable(certificate: &CertificateDer<'static>) -> bool {
    X509Certificate::from_der(certificate).is_ok()
        && RootCertStore::empty().add(certificate.clone()).is_ok()
}

/// What the engine at `address` is called in requests: by its name where it has to prove one.
pub(crate) fn host(address: SocketAddr, spoken: &Spoken) -> String {
    match &spoken.tls_name {
        None => address.to_string(),
        Some(name) => {
            let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
            if address.port() == USUAL { name } else { format!("{name}:{}", address.port()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn an_engine_is_called_by_the_name_it_proves() {
        let host = |address: &str, name: Option<&str>| {
            let tls_name = name.map(str::to_owned);
            host(address.parse().unwrap(), &Spoken { tls_name, ..Spoken::default() })
        };
        assert_eq!(host("127.0.0.1:8000", None), "127.0.0.1:8000");
        assert_eq!(host("10.0.0.1:443", Some("api.example")), "api.example");
        assert_eq!(host("10.0.0.1:8443", Some("api.example")), "api.example:8443");
        assert_eq!(host("[::1]:8443", Some("::1")), "[::1]:8443");
    }

    #[test]
    fn a_file_of_authorities_that_has_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        assert!(matches!(Trust::new(Some(&file)), Err(TrustError::Unreadable { .. })));
        std::fs::write(&file, "nothing").unwrap();
        assert!(matches!(Trust::new(Some(&file)), Err(TrustError::Empty { .. })));
        let half = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
        let key = KeyPair::generate().unwrap();
        let good = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap().pem();
        std::fs::write(&file, format!("{good}{half}")).unwrap();
        let fault = Trust::new(Some(&file)).expect_err("it was taken for one");
        assert!(matches!(fault, TrustError::Faulty { position: 2, .. }), "{fault}");
        assert!(fault.to_string().contains("ca.crt"), "{fault}");
        assert!(Trust::new(None).is_ok());
    }

    #[test]
    fn a_file_of_authorities_is_read_once_and_counts_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        let key = KeyPair::generate().unwrap();
        let good = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap().pem();
        std::fs::write(&file, &good).unwrap();
        let trust = Trust::new(Some(&file)).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(trust.authorities().0.len(), 1, "nobody is believed any more");
    }
}
