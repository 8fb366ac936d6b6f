//! What a conversation is about: a repository on a hub or an artifact in a registry. Where it is asked for, and
//! what an answer says of its files.

use url::Url;

use super::conversation::bad_source;
use super::listing::{Listed, Listing};
use super::selection::From;
use super::site::Site;
use super::{BadEndpoint, Digest, Head, Hub, Plan, RemoteFile, Selection, Terms};
use crate::activation::{Failure, Reason};
use crate::sources::huggingface::Repository;
use crate::sources::oci::{ACCEPT, Artifact};
use crate::sources::{BadSource, RelativePath, Source};

/// Digits of a whole commit's name. A shorter one may be a branch too.
const COMMIT_LENGTH: usize = 40;

/// What a conversation is about.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Repository { repository: Repository, hub: Hub },
    Artifact(Artifact),
}

/// What an answer comes to.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The files.
    Listed(Listing),
    /// It is asked further there.
    Next(Url),
    /// It came damaged; it may come whole.
    Broken(String),
    /// It cannot be used.
    Never(Failure),
}

impl Wanted {
    /// What `source` asks for, if it is downloaded.
    pub(super) fn of(source: &Source, terms: &Terms) -> Result<Option<Self>, BadEndpoint> {
        let plain = &terms.insecure_registries;
        Ok(Some(match source {
            Source::HuggingFace(repository) => {
                Self::Repository { repository: repository.clone(), hub: terms.hub.clone() }
            }
            Source::Oci(reference) => Self::Artifact(Artifact::of(reference, plain)?),
            Source::Ollama(reference) => Self::Artifact(Artifact::of_ollama(reference, plain)?),
            Source::File(_) | Source::Pvc(_) => return Ok(None),
        }))
    }

    /// The revision of `source` that is asked for.
    pub(super) fn revision(
        &self,
        source: &Source,
        selection: &Selection,
    ) -> Result<String, BadSource> {
        let own = match (self, source) {
            (Self::Repository { repository, .. }, _) => return selection.revision_of(repository),
            (_, Source::Oci(reference)) => reference.revision(),
            (_, Source::Ollama(reference)) => reference.revision(),
            _ => "latest",
        };
        match &selection.revision {
            Some(config) if config != own => Err(BadSource::TwoRevisions {
                source_revision: own.to_owned(),
                config_revision: config.clone(),
            }),
            _ => Ok(own.to_owned()),
        }
    }

    /// Who is asked.
    pub(super) fn site(&self) -> Site {
        match self {
            Self::Repository { hub, .. } => Site::Hub(hub.clone()),
            Self::Artifact(artifact) => Site::Registry(artifact.pass()),
        }
    }

    /// What it is called in messages.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Repository { repository, .. } => repository.id(),
            Self::Artifact(artifact) => artifact.id(),
        }
    }

    /// What a folder of it is known by.
    pub(super) fn identity(&self, revision: &str) -> String {
        match self {
            Self::Repository { repository, .. } => format!("HF://{}@{revision}", repository.id()),
            Self::Artifact(artifact) => artifact.identity(revision),
        }
    }

    /// The part of it that the source itself names.
    pub(super) fn within(&self) -> Option<&RelativePath> {
        match self {
            Self::Repository { repository, .. } => repository.path.as_ref(),
            Self::Artifact(_) => None,
        }
    }

    /// What the engine is given where the Model names no file.
    pub(super) fn file(&self) -> Option<&RelativePath> {
        match self {
            Self::Repository { repository, .. } => repository.path.as_ref(),
            Self::Artifact(artifact) => artifact.file(),
        }
    }

    /// The kinds of answer that are understood.
    pub(super) const fn accept(&self) -> &'static str {
        match self {
            Self::Repository { .. } => "application/json",
            Self::Artifact(_) => ACCEPT,
        }
    }

    /// Where is asked first.
    pub(super) fn begin(&mut self, revision: &str) -> Result<Url, BadEndpoint> {
        match self {
            Self::Repository { repository, hub } => hub.list_url(&repository.id(), revision),
            Self::Artifact(artifact) => artifact.begin(revision),
        }
    }

    /// What was answered about it at `revision`.
    pub(super) fn hear(&mut self, revision: &str, head: &Head, body: &[u8]) -> Heard {
        match self {
            Self::Artifact(artifact) => artifact.read(head, body),
            Self::Repository { repository, .. } => match Listing::parse(body) {
                Ok(listing) => match other_commit(&repository.id(), revision, &listing) {
                    Some(failure) => Heard::Never(failure),
                    None => Heard::Listed(listing),
                },
                Err(error) => Heard::Broken(format!("the hub's list of files is wrong: {error}")),
            },
        }
    }

    /// The files of `listing` that are wanted, with where each is asked for.
    pub(super) fn plan(
        &self,
        selection: &Selection,
        revision: &str,
        listing: Listing,
    ) -> Result<Plan, Failure> {
        let from = From { id: &self.id(), within: self.within() };
        let revision = listing.commit.as_deref().unwrap_or(revision);
        let mut files = Vec::new();
        for listed in selection.choose(&from, &listing.files)? {
            let url = self.file_url(revision, &listed).map_err(|error| bad_source(&error))?;
            let Listed { path, size, digest } = listed;
            files.push(RemoteFile { path, size, digest, url });
        }
        Ok(Plan { commit: listing.commit, files })
    }

    fn file_url(&self, revision: &str, file: &Listed) -> Result<Url, BadEndpoint> {
        match self {
            Self::Repository { repository, hub } => {
                hub.file_url(&repository.id(), revision, &file.path)
            }
            Self::Artifact(artifact) => {
                artifact.file_url(file.digest.as_ref().map(Digest::hex).unwrap_or_default())
            }
        }
    }
}

/// The failure of a hub that was asked for one commit and answers with another: what is asked for by its digest
/// is not to be taken on trust.
fn other_commit(id: &str, asked: &str, listing: &Listing) -> Option<Failure> {
    let whole = asked.len() == COMMIT_LENGTH && asked.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commit = listing.commit.as_deref()?;
    (whole && !commit.eq_ignore_ascii_case(asked)).then(|| {
        let message = format!(
            "the hub was asked for commit {asked} of {id} and answered with {commit}; ask the hub itself instead \
             of a mirror (HF_ENDPOINT)"
        );
        Failure::new(Reason::DigestMismatch, message)
    })
}
