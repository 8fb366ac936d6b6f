//! What the hub says a repository holds. Its answer is not trusted: every path is checked.

use serde::Deserialize;
use url::Url;

use super::super::RelativePath;

/// One file to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its path in the repository, and below the destination.
    pub path: RelativePath,
    /// Its length in bytes, where the hub says one.
    pub size: Option<u64>,
    /// What its content is, where the hub says so.
    pub digest: Option<Digest>,
    /// Where it is asked for, at the pinned commit.
    pub url: Url,
}

/// What a file's content is known by; lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Digest {
    /// SHA-256 of the content: files in large-file storage.
    Sha256(String),
    /// SHA-1 over `blob <length>`, a zero byte and the content, as git names a file.
    GitBlob(String),
}

impl Digest {
    /// The hexadecimal text.
    pub fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitBlob(hex) => hex,
        }
    }
}

/// A repository at one commit, or an artifact.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The commit, where the hub says it; an artifact's digest.
    pub(crate) commit: Option<String>,
    pub(crate) files: Vec<Listed>,
}

/// A file as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: RelativePath,
    pub(crate) size: Option<u64>,
    pub(crate) digest: Option<Digest>,
}

/// An answer that is no list of files.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadListing {
    #[error("it is not the JSON of a repository ({0})")]
    NotJson(#[from] serde_json::Error),
    #[error("it names a file that would leave its folder: {0}")]
    BadPath(#[from] super::super::BadSource),
    #[error("it gives the commit {0:?}")]
    BadCommit(String),
}

#[derive(Deserialize)]
struct Answer {
    sha: Option<String>,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    #[serde(rename = "rfilename")]
    name: String,
    size: Option<u64>,
    #[serde(rename = "blobId")]
    blob: Option<String>,
    lfs: Option<LargeFile>,
}

#[derive(Deserialize)]
struct LargeFile {
    sha256: Option<String>,
    size: Option<u64>,
}

impl Listing {
    /// Reads the hub's answer.
    pub(super) fn parse(body: &[u8]) -> Result<Self, BadListing> {
        let answer = serde_json::from_slice::<Answer>(body)?;
        if let Some(commit) = &answer.sha
            && (commit.is_empty() || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            return Err(BadListing::BadCommit(commit.clone()));
        }
        let files = answer.siblings.into_iter().map(listed).collect::<Result<_, _>>()?;
        Ok(Self { commit: answer.sha, files })
    }
}

fn listed(sibling: Sibling) -> Result<Listed, BadListing> {
    let path = RelativePath::parse(&sibling.name)?;
    let (size, digest) = match sibling.lfs {
        Some(large) => (large.size.or(sibling.size), hex(large.sha256, 64).map(Digest::Sha256)),
        None => (sibling.size, hex(sibling.blob, 40).map(Digest::GitBlob)),
    };
    Ok(Listed { path, size, digest })
}

/// `text` in lower case if it is a hexadecimal number of `length` digits.
fn hex(text: Option<String>, length: usize) -> Option<String> {
    let text = text?;
    let well_formed = text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    well_formed.then(|| text.to_ascii_lowercase())
}
