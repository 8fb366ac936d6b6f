//! `HF://org/name[@revision][:path]`, also written `hf://` and `huggingface://`.
//!
//! A revision may contain slashes (`refs/pr/1`), so a path after one begins with a colon. Without a
//! revision `HF://org/name/path` means the same as `HF://org/name:path`. Letter case is kept.

use std::fmt;

use super::{BadSource, RelativePath};

pub(super) const EXAMPLE: &str = "HF://org/name[@revision][:path]";

/// A repository on the Hugging Face hub, or one file or folder of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repository {
    /// The organisation or user that owns it.
    pub organisation: String,
    /// Its name within the organisation.
    pub name: String,
    /// The branch, tag, commit or reference; `None` is whatever the configuration says, else `main`.
    pub revision: Option<String>,
    /// The file or folder of the repository that the model is; `None` is all of it.
    pub path: Option<RelativePath>,
}

impl Repository {
    /// Reads what stands behind `HF://`.
    pub fn parse(rest: &str) -> Result<Self, BadSource> {
        let (organisation, after) = rest.split_once('/').ok_or(BadSource::Missing {
            part: "the name behind the organisation",
            example: EXAMPLE,
        })?;
        let end = after.find(['@', ':', '/']).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        let (revision, path) = match tail.split_at_checked(1) {
            Some(("@", tail)) => match tail.split_once(':') {
                Some((revision, path)) => (Some(revision), Some(path)),
                None => (Some(tail), None),
            },
            Some((":", path)) => (None, Some(path)),
            Some((_, "")) | None => (None, None),
            Some((_, path)) => (None, Some(path)),
        };
        Ok(Self {
            organisation: repository_word("the organisation", organisation)?,
            name: repository_word("the repository name", name)?,
            revision: revision.map(checked_revision).transpose()?,
            path: path.map(RelativePath::parse).transpose()?,
        })
    }

    /// `organisation/name`, as the hub calls the repository.
    pub fn id(&self) -> String {
        format!("{}/{}", self.organisation, self.name)
    }
}

/// Checks a revision: what git allows as the name of a reference, or a commit.
pub fn checked_revision(text: &str) -> Result<String, BadSource> {
    let refused = |problem| {
        Err(BadSource::BadPart {
            part: "the revision",
            text: text.to_owned(),
            problem,
            example: EXAMPLE,
        })
    };
    if text.is_empty() {
        return Err(BadSource::Missing { part: "the revision behind `@`", example: EXAMPLE });
    }
    if text.contains(['~', '^', ':', '?', '*', '[', '\\', '@', ' '])
        || text.chars().any(char::is_control)
    {
        return refused("has a character in it that no revision can have");
    }
    if text.contains("..")
        || text.contains("//")
        || text.starts_with(['-', '/', '.'])
        || text.ends_with(['/', '.'])
    {
        return refused("is not the name of a branch, tag or commit");
    }
    Ok(text.to_owned())
}

fn repository_word(part: &'static str, text: &str) -> Result<String, BadSource> {
    if text.is_empty() {
        return Err(BadSource::Missing { part, example: EXAMPLE });
    }
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if !text.chars().all(allowed) || text.starts_with(['.', '-']) || text.contains("..") {
        return Err(BadSource::BadPart {
            part,
            text: text.to_owned(),
            problem: "may only have letters, digits, `-`, `_` and single dots inside",
            example: EXAMPLE,
        });
    }
    Ok(text.to_owned())
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.organisation, self.name)?;
        if let Some(revision) = &self.revision {
            write!(formatter, "@{revision}")?;
        }
        if let Some(path) = &self.path {
            write!(formatter, ":{path}")?;
        }
        Ok(())
    }
}
