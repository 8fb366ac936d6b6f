//! A certificate chain and its key as files have them: what is wrong with them, and until when they hold.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// The protocols that are offered, the better one first. curl offers the last one alone if it is told to.
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];

/// What is wrong with a pair of files.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// What a file holds is not PEM.
    #[error("the {file} is not PEM that can be read: {problem}")]
    NotPem {
        /// Which of the two.
        file: &'static str,
        /// What is wrong.
        problem: pem::Error,
    },
    /// There is no certificate.
    #[error(
        "the certificate's file holds none; it has to hold the server's own, then those that signed it"
    )]
    NoCertificate,
    /// There is no key.
    #[error("the key's file holds no private key")]
    NoKey,
    /// They do not belong together.
    #[error("the key is not that of the first certificate, which has to be the server's own")]
    Mismatch,
    /// A certificate says things that cannot be read.
    #[error("certificate {position} of the chain cannot be read: {problem}")]
    Unreadable {
        /// Its place, counted from 1.
        position: usize,
        /// What is wrong.
        problem: String,
    },
    /// Anything else.
    #[error("they cannot be used")]
    Unusable(#[source] rustls::Error),
}

/// A pair that connections can be secured with.
pub(super) struct Pair {
    pub(super) config: Arc<ServerConfig>,
    /// When its first certificate to expire does.
    pub(super) expires: Timestamp,
    /// The place of the first certificate that did not sign the one before it, counted from 1.
    pub(super) out_of_order: Option<usize>,
}

/// What the two files hold.
pub(super) fn understand(certificate: &[u8], key: &[u8]) -> Result<Pair, TlsFault> {
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|problem| TlsFault::NotPem { file: "certificate", problem })?;
    if chain.is_empty() {
        return Err(TlsFault::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|problem| match problem {
        pem::Error::NoItemsFound => TlsFault::NoKey,
        problem => TlsFault::NotPem { file: "key", problem },
    })?;
    let Read { expires, out_of_order } = read(&chain)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsFault::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsFault::Mismatch,
            error => TlsFault::Unusable(error),
        })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(Pair { config: Arc::new(config), expires, out_of_order })
}

/// What a chain says of itself.
struct Read {
    expires: Timestamp,
    out_of_order: Option<usize>,
}

fn read(chain: &[CertificateDer<'_>]) -> Result<Read, TlsFault> {
    let mut expires = Timestamp::MAX;
    let mut out_of_order = None;
    let mut signer: Option<Vec<u8>> = None;
    for (place, der) in chain.iter().enumerate() {
        let position = place + 1;
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|error| TlsFault::Unreadable { position, problem: error.to_string() })?;
        let until = certificate.validity().not_after.timestamp();
        expires = expires.min(Timestamp::from_second(until).unwrap_or(Timestamp::MAX));
        if signer.is_some_and(|signer| signer != certificate.subject().as_raw()) {
            out_of_order.get_or_insert(position);
        }
        signer = Some(certificate.issuer().as_raw().to_vec());
    }
    Ok(Read { expires, out_of_order })
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    fn named(name: &str) -> CertificateParams {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters
    }

    fn fault(certificate: &str, key: &str) -> String {
        understand(certificate.as_bytes(), key.as_bytes())
            .err()
            .map_or_else(String::new, |fault| fault.to_string())
    }

    #[test]
    fn a_pair_says_until_when_it_holds() {
        let key = KeyPair::generate().unwrap();
        let mut parameters = named("a.example");
        parameters.not_after = rcgen::date_time_ymd(2031, 5, 6);
        let certificate = parameters.self_signed(&key).unwrap().pem();
        let pair = understand(certificate.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        assert_eq!(pair.expires.to_string(), "2031-05-06T00:00:00Z");
        assert_eq!(pair.config.alpn_protocols, PROTOCOLS);
        assert_eq!(pair.out_of_order, None);
    }

    #[test]
    fn whatever_is_wrong_with_a_pair_is_told() {
        let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let certificate = named("a.example").self_signed(&one).unwrap().pem();
        let key = one.serialize_pem();
        assert_eq!(fault(&certificate, &key), "");
        let half = &certificate[..certificate.len() / 2];
        for (certificate, key, problem) in [
            (certificate.as_str(), other.serialize_pem().as_str(), "not that of the first"),
            ("", key.as_str(), "holds none"),
            (half, &key, "the certificate is not PEM"),
            (&certificate, "", "no private key"),
            (&certificate, &key[..key.len() / 2], "the key is not PEM"),
            (&key, &certificate, "holds none"),
        ] {
            let told = fault(certificate, key);
            assert!(told.contains(problem), "{told} does not tell that {problem}");
        }
    }

    #[test]
    fn a_chain_that_is_out_of_order_is_noticed() {
        let [root, middle, leaf] = [(); 3].map(|()| KeyPair::generate().unwrap());
        let authority = |name: &str| {
            let mut parameters = named(name);
            parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            parameters
        };
        let by_root = Issuer::new(authority("root"), &root);
        let by_middle = Issuer::new(authority("middle"), &middle);
        let middle_pem = authority("middle").signed_by(&middle, &by_root).unwrap().pem();
        let root_pem = authority("root").self_signed(&root).unwrap().pem();
        let leaf_pem = named("a.example").signed_by(&leaf, &by_middle).unwrap().pem();
        let order = |chain: [&String; 3]| {
            let chain = chain.map(String::as_str).concat();
            understand(chain.as_bytes(), leaf.serialize_pem().as_bytes()).unwrap().out_of_order
        };
        assert_eq!(order([&leaf_pem, &middle_pem, &root_pem]), None);
        assert_eq!(order([&leaf_pem, &root_pem, &middle_pem]), Some(2));
    }
}
