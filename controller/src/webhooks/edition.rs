//! An authority and the one certificate that it signed. The authority's key is forgotten once it has, so nobody can
//! sign anything else that API servers would take for ours.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flexinfer_core::admission::certificates::Worth;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;

/// By how much the clocks of the machines of a cluster may differ: a certificate is valid this much earlier.
const SKEW: Duration = Duration::from_secs(60 * 60);

/// An authority and what it signed, each as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edition {
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Why there is no edition, or why one cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum EditionError {
    #[error("a certificate cannot be made: {0}")]
    Made(#[from] rcgen::Error),
    #[error("what is kept is no certificate: {0}")]
    Read(#[from] rustls::pki_types::pem::Error),
    #[error("the certificate cannot be served: {0}")]
    Used(#[from] rustls::Error),
}

impl Edition {
    /// A new one for a server that is reached as `name`, valid for `life` from `now` on.
    pub(super) fn new(name: &str, life: Duration, now: SystemTime) -> Result<Self, EditionError> {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let moment = |since: Duration| date_time_ymd(1970, 1, 1) + since;
        let (from, until) = (moment(now.saturating_sub(SKEW)), moment(now + life));
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "flexinfer-controller");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        (authority.not_before, authority.not_after) = (from, until);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut server = CertificateParams::new(vec![name.to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "flexinfer-webhooks");
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        (server.not_before, server.not_after) = (from, until);
        // Several authorities are trusted at a time, all under one name.
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &authority)?.pem();
        Ok(Self { authority: authority.pem(), certificate, key: key.serialize_pem() })
    }

    /// What it is worth at `now` to a server that is reached as `name` and renews after two thirds of `life`.
    pub(super) fn worth(&self, name: &str, life: Duration, now: SystemTime) -> Worth {
        let good = |in_future: Duration| self.good_at(name, now + in_future);
        match () {
            () if !good(Duration::ZERO) => Worth::None,
            () if !good(life / 4) => Worth::Old,
            () if !good(life / 3) => Worth::Ageing,
            () => Worth::Fresh,
        }
    }

    /// Whether a client that trusts the authority would take the certificate from `name` at `moment`.
    fn good_at(&self, name: &str, moment: SystemTime) -> bool {
        let checked = || -> Option<()> {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).ok()?).ok()?;
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .ok()?;
            let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).ok()?;
            let name = ServerName::try_from(name).ok()?;
            let moment = moment.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            let moment = UnixTime::since_unix_epoch(moment);
            verifier.verify_server_cert(&certificate, &[], &name, &[], moment).ok()?;
            self.certified().ok().map(drop)
        };
        checked().is_some()
    }

    /// As a server shows it.
    pub(super) fn certified(&self) -> Result<CertifiedKey, EditionError> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        // Refused where the key is not that of the certificate.
        Ok(CertifiedKey::from_der(vec![certificate], key, &provider())?)
    }
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "flexinfer-webhooks.models.svc";
    const LIFE: Duration = Duration::from_secs(1200);

    #[test]
    fn an_edition_loses_worth_as_it_ages() {
        let now = SystemTime::now();
        let edition = Edition::new(NAME, LIFE, now).unwrap();
        let after = |seconds| edition.worth(NAME, LIFE, now + Duration::from_secs(seconds));
        assert_eq!(after(0), Worth::Fresh);
        assert_eq!(after(790), Worth::Fresh);
        assert_eq!(after(810), Worth::Ageing);
        assert_eq!(after(910), Worth::Old);
        assert_eq!(after(1210), Worth::None);
    }

    #[test]
    fn clocks_that_are_late_take_a_new_edition() {
        let now = SystemTime::now();
        let edition = Edition::new(NAME, LIFE, now).unwrap();
        assert_eq!(edition.worth(NAME, LIFE, now - SKEW / 2), Worth::Fresh);
        assert_eq!(edition.worth(NAME, LIFE, now - SKEW * 2), Worth::None);
    }

    #[test]
    fn what_does_not_belong_together_is_worth_nothing() {
        let now = SystemTime::now();
        let (one, other) =
            (Edition::new(NAME, LIFE, now).unwrap(), Edition::new(NAME, LIFE, now).unwrap());
        let worth = |edition: &Edition| edition.worth(NAME, LIFE, now);
        assert_eq!(one.worth("elsewhere.models.svc", LIFE, now), Worth::None);
        assert_eq!(worth(&Edition { key: other.key.clone(), ..one.clone() }), Worth::None);
        assert_eq!(
            worth(&Edition { authority: other.authority.clone(), ..one.clone() }),
            Worth::None
        );
        assert_eq!(worth(&Edition { certificate: "cut off".to_owned(), ..one }), Worth::None);
    }
}
