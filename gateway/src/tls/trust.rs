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

/// The port that https means where none is said.
const USUAL: u16 = 443;

/// Whose signature under an engine's certificate counts: the system's authorities, or those of a file in
/// their place.
#[derive(Debug, Default)]
pub struct Trust {
    file: Option<PathBuf>,
    /// Made when the first such engine is asked, since most gateways have none.
    config: OnceLock<Arc<ClientConfig>>,
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
}

impl Trust {
    /// The authorities in `file` (`--engine-ca`); without one the system's.
    pub fn new(file: Option<&Path>) -> Result<Self, TrustError> {
        if let Some(file) = file {
            certificates(file)?;
        }
        Ok(Self { file: file.map(Path::to_path_buf), config: OnceLock::new() })
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
        let config = match self.config.get() {
            Some(config) => config,
            None => self.config.get_or_init(|| Arc::new(self.believe())),
        };
        let mut config = ClientConfig::clone(config);
        let offered: &[&[u8]] = match wanted {
            EngineProtocol::Http1 => &[b"http/1.1"],
            EngineProtocol::H2 => &[b"h2"],
            EngineProtocol::H2c | EngineProtocol::Alpn => &[b"h2", b"http/1.1"],
        };
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    #[expect(clippy::expect_used, reason = "both versions are ring's")]
    fn believe(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let known = match &self.file {
            // It was read before; one that has become unreadable since lets nobody be believed.
            Some(file) => certificates(file).unwrap_or_default(),
            None => rustls_native_certs::load_native_certs().certs,
        };
        roots.add_parsable_certificates(known);
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows the versions that rustls defaults to")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let unreadable = |problem| TrustError::Unreadable { file: file.to_path_buf(), problem };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect).map_err(unreadable)?;
    if found.is_empty() {
        return Err(TrustError::Empty { file: file.to_path_buf() });
    }
    Ok(found)
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
        assert!(Trust::new(None).is_ok());
    }
}
