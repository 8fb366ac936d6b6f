//! `pvc://claim[/path]`: weights in a persistent volume claim. In local mode a claim is a folder:
//! the one that a flag maps it to, else `<data folder>/pvc/<claim>`.

use std::fmt;

use super::{BadSource, RelativePath};

pub(super) const EXAMPLE: &str = "pvc://claim/path";

/// A file or folder in a claim, or the whole claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The name of the PersistentVolumeClaim.
    pub claim: String,
    /// The path in it; `None` is its root.
    pub path: Option<RelativePath>,
}

impl Location {
    /// Reads what stands behind `pvc://`.
    pub fn parse(rest: &str) -> Result<Self, BadSource> {
        let (claim, path) = match rest.split_once('/') {
            Some((claim, path)) if !path.is_empty() => (claim, Some(RelativePath::parse(path)?)),
            Some((claim, _)) => (claim, None),
            None => (rest, None),
        };
        Ok(Self { claim: claim_name(claim)?, path })
    }
}

/// Kubernetes allows a DNS subdomain: at most 253 of `a-z 0-9 - .`, each label with letters or
/// digits at its ends.
fn claim_name(text: &str) -> Result<String, BadSource> {
    if text.is_empty() {
        return Err(BadSource::Missing { part: "the claim's name", example: EXAMPLE });
    }
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        label.bytes().all(|byte| letter(byte) || byte == b'-')
            && label.bytes().next().is_some_and(letter)
            && label.bytes().last().is_some_and(letter)
    };
    if text.len() > 253 || !text.split('.').all(label) {
        return Err(BadSource::BadPart {
            part: "the claim's name",
            text: text.to_owned(),
            problem: "is not the name of a claim: lower-case letters, digits, `-` and `.` only",
            example: EXAMPLE,
        });
    }
    Ok(text.to_owned())
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.claim)?;
        match &self.path {
            Some(path) => write!(formatter, "/{path}"),
            None => Ok(()),
        }
    }
}
