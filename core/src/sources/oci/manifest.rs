//! A registry's manifests and indexes. Nothing in them is trusted: each is compared with its digest first, and
//! every path and digest that they name is checked (SEC-06).

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::Digest as _;

/// What is understood, for the `Accept` header: registries answer with one of these.
pub(in crate::sources) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

/// The platform of this program, as indexes name it.
const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

/// Why what a registry sends is no manifest that can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadManifest {
    #[error("it is no manifest ({0})")]
    NotJson(#[from] serde_json::Error),
    #[error("it is of the first version of Docker's manifests, which has no digests; push it anew")]
    TooOld,
    #[error("it has neither layers nor manifests in it")]
    Neither,
    #[error("it names a blob by `{0}`; only sha256 is understood")]
    OtherDigest(String),
    #[error("it is an index without a manifest for linux/{ARCHITECTURE}; it has {0}")]
    NoPlatform(String),
}

/// What a document is.
#[derive(Debug)]
pub(super) enum Document {
    /// The manifest to go on with, of those that it names.
    Index(Descriptor),
    /// The blobs that it is made of.
    Manifest(Vec<Descriptor>),
}

/// Something in the registry, by its digest.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    /// `sha256:` and its digits.
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default)]
    pub(super) annotations: Option<BTreeMap<String, String>>,
    platform: Option<Platform>,
}

#[derive(Clone, Debug, Deserialize)]
struct Platform {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    schema_version: Option<u64>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

impl Descriptor {
    /// The media type without its parameters.
    pub(super) fn kind(&self) -> &str {
        self.media_type.split(';').next().unwrap_or_default().trim()
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn checked(self) -> Result<Self, BadManifest> {
        match sha256_hex(&self.digest) {
            Some(_) => Ok(self),
            None => Err(BadManifest::OtherDigest(self.digest)),
        }
    }

    /// Whether it tells of another manifest instead of being one for somebody.
    fn attests(&self) -> bool {
        self.annotation("vnd.docker.reference.type").is_some()
    }

    fn fits(&self) -> bool {
        let platform = self.platform.as_ref();
        platform.is_some_and(|it| it.os == "linux" && it.architecture == ARCHITECTURE)
    }

    fn platform(&self) -> String {
        let platform = self.platform.as_ref();
        platform.map_or_else(String::new, |it| format!("{}/{}", it.os, it.architecture))
    }
}

impl Document {
    /// Reads a manifest, or chooses one of an index: the only one; else the first for this platform; else the
    /// first without a platform, since weights are the same everywhere.
    pub(super) fn parse(body: &[u8]) -> Result<Self, BadManifest> {
        let written = serde_json::from_slice::<Written>(body)?;
        match (written.layers, written.manifests) {
            (Some(layers), None) => {
                let layers = layers.into_iter().map(Descriptor::checked).collect::<Result<_, _>>();
                Ok(Self::Manifest(layers?))
            }
            (None, Some(manifests)) => choose(manifests)?.checked().map(Self::Index),
            _ if written.schema_version == Some(1) => Err(BadManifest::TooOld),
            _ => Err(BadManifest::Neither),
        }
    }
}

fn choose(mut manifests: Vec<Descriptor>) -> Result<Descriptor, BadManifest> {
    manifests.retain(|manifest| !manifest.attests());
    let only = (manifests.len() == 1).then_some(0);
    let chosen = only
        .or_else(|| manifests.iter().position(Descriptor::fits))
        .or_else(|| manifests.iter().position(|manifest| manifest.platform.is_none()));
    if let Some(at) = chosen {
        return Ok(manifests.swap_remove(at));
    }
    let named = manifests.iter().map(Descriptor::platform).collect::<Vec<_>>().join(", ");
    Err(BadManifest::NoPlatform(if named.is_empty() { "none".to_owned() } else { named }))
}

/// The digits of a digest `sha256:…`, if it is one.
pub(super) fn sha256_hex(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (hex.len() == 64 && hex.bytes().all(is_digit)).then_some(hex)
}

/// The digest of `body`, with its `sha256:`.
pub(super) fn digest_of(body: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut digest = "sha256:".to_owned();
    for byte in sha2::Sha256::digest(body) {
        let _infallible = write!(digest, "{byte:02x}");
    }
    digest
}
