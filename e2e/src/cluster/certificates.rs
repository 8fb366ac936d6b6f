//! The cluster's own authority and what it signs: the API server's certificate and one per client.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, Error, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};

/// A certificate and its key, each as PEM.
pub(super) struct Certified {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Signs the certificates of one cluster.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Result<Self, Error> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "test cluster");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self { issuer: CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)? })
    }

    pub(super) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// For a server that is reached by `names`, which may be addresses.
    pub(super) fn server(&self, names: &[&str]) -> Result<Certified, Error> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        self.sign(CertificateParams::new(names)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// For a client that is `user` of `group`, where one is given.
    pub(super) fn client(&self, user: &str, group: Option<&str>) -> Result<Certified, Error> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            parameters.distinguished_name.push(DnType::OrganizationName, group);
        }
        self.sign(parameters, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut parameters: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Certified, Error> {
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?.pem();
        Ok(Certified { certificate, key: key.serialize_pem() })
    }
}
