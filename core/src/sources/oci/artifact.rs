//! One artifact being asked for: its manifest, compared with the digest that is known of it, perhaps by way of
//! an index, until its files are known.

use url::Url;

use super::layers::files;
use super::manifest::{BadManifest, Document, digest_of, sha256_hex};
use super::{Pass, Reference, Registry};
use crate::activation::{Failure, Reason};
use crate::sources::download::{BadEndpoint, Head, Heard, Listing};
use crate::sources::{RelativePath, Source, ollama};

/// An index may name another; more than this leads nowhere.
const DEEPEST: u32 = 3;

/// An artifact, and how far it is known.
#[derive(Clone, Debug)]
pub(in crate::sources) struct Artifact {
    /// The scheme of its source.
    scheme: &'static str,
    registry: Registry,
    repository: String,
    /// The file that the engine is given where the Model names none.
    file: Option<RelativePath>,
    /// The digest of the manifest that the talk began with, once it is known.
    pinned: Option<String>,
    /// The digest of the manifest that is asked for now, where one is known.
    expected: Option<String>,
    depth: u32,
}

impl Artifact {
    /// The artifact behind `oci://`, whose registry may be asked over plain http where it is among `plain`.
    pub(in crate::sources) fn of(
        reference: &Reference,
        plain: &[String],
    ) -> Result<Self, BadEndpoint> {
        Self::new("oci", (&reference.registry, &reference.repository), None, plain)
    }

    /// The same of what Ollama's registry holds under a name.
    pub(in crate::sources) fn of_ollama(
        reference: &ollama::Reference,
        plain: &[String],
    ) -> Result<Self, BadEndpoint> {
        let (registry, repository) = reference.in_registry();
        let file = Some(ollama::Reference::model_file());
        Self::new("ollama", (&registry, &repository), file, plain)
    }

    fn new(
        scheme: &'static str,
        (registry, repository): (&str, &str),
        file: Option<RelativePath>,
        plain: &[String],
    ) -> Result<Self, BadEndpoint> {
        let (registry, repository) = (Registry::at(registry, plain)?, repository.to_owned());
        Ok(Self { scheme, registry, repository, file, pinned: None, expected: None, depth: 0 })
    }

    /// How we stand with its registry before anything was asked.
    pub(in crate::sources) fn pass(&self) -> Pass {
        Pass::new(self.registry.clone(), &self.repository)
    }

    /// The registry and the repository, for messages.
    pub(in crate::sources) fn id(&self) -> String {
        format!("{}/{}", self.registry.host(), self.repository)
    }

    /// What a folder of it is known by.
    pub(in crate::sources) fn identity(&self, revision: &str) -> String {
        let joint = if sha256_hex(revision).is_some() { '@' } else { ':' };
        format!("{}://{}{joint}{revision}", self.scheme, self.id())
    }

    /// The file that the engine is given where the Model names none.
    pub(in crate::sources) fn file(&self) -> Option<&RelativePath> {
        self.file.as_ref()
    }

    /// Where the manifest is asked for at `revision`, from the beginning.
    pub(in crate::sources) fn begin(&mut self, revision: &str) -> Result<Url, BadEndpoint> {
        self.depth = 0;
        self.expected = sha256_hex(revision).map(|_| revision.to_owned());
        self.registry.manifest_url(&self.repository, revision)
    }

    /// Where a file is asked for.
    pub(in crate::sources) fn file_url(&self, hex: &str) -> Result<Url, BadEndpoint> {
        self.registry.blob_url(&self.repository, &format!("sha256:{hex}"))
    }

    /// The answer to the request for a manifest.
    pub(in crate::sources) fn read(&mut self, head: &Head, body: &[u8]) -> Heard {
        let found = digest_of(body);
        if let Some(expected) = &self.expected
            && *expected != found
        {
            return Heard::Never(self.other_digest(expected, &found));
        }
        // A tag has no digest of its own; what the registry says of it tells of damage on the way.
        let said = head.header("docker-content-digest").filter(|said| sha256_hex(said).is_some());
        if said.is_some_and(|said| said != found) {
            return Heard::Broken("the manifest is not what its own digest says".to_owned());
        }
        if self.depth == 0 {
            self.pinned = Some(found);
        }
        match Document::parse(body) {
            Ok(Document::Manifest(layers)) => match files(&layers) {
                Ok(files) => Heard::Listed(Listing { commit: self.pinned.clone(), files }),
                Err(error) => self.unusable(&error),
            },
            Ok(Document::Index(_)) if self.depth >= DEEPEST => {
                self.unusable(&"its index names an index, and so on".to_owned())
            }
            Ok(Document::Index(chosen)) => {
                self.depth += 1;
                match self.registry.manifest_url(&self.repository, &chosen.digest) {
                    Ok(url) => {
                        self.expected = Some(chosen.digest);
                        Heard::Next(url)
                    }
                    Err(error) => self.unusable(&error),
                }
            }
            // Likely a page that tells of an error.
            Err(error @ BadManifest::NotJson(_)) if self.expected.is_none() => {
                Heard::Broken(error.to_string())
            }
            Err(error) => self.unusable(&error),
        }
    }

    fn unusable(&self, error: &dyn std::fmt::Display) -> Heard {
        let message = format!("{} cannot be used: {error}", self.id());
        Heard::Never(Failure::new(Reason::BadSource, message))
    }

    fn other_digest(&self, expected: &str, found: &str) -> Failure {
        let message = format!(
            "{} was asked for the manifest {expected} and answered with {found}; it, a mirror or a proxy on the \
             way damages it: use another",
            self.id()
        );
        Failure::new(Reason::DigestMismatch, message)
    }
}

impl Source {
    /// The registry that this source is in, by the name that logins have for it, and the repository there.
    pub fn registry(&self) -> Option<(String, String)> {
        match self {
            Self::Oci(reference) => {
                Some((reference.registry.clone(), reference.repository.clone()))
            }
            Self::Ollama(reference) => Some(reference.in_registry()),
            Self::HuggingFace(_) | Self::File(_) | Self::Pvc(_) => None,
        }
    }
}
