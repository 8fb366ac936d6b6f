//! `file:///absolute/path` and `file://./relative/path`: weights that lie on the machine already.
//!
//! A relative path counts from the folder of the file that defines the Model, so it has a meaning
//! in local mode only. `..` is refused in both forms.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{BadSource, RelativePath};

pub(super) const EXAMPLE: &str = "file:///absolute/path or file://./path/beside/the/model's/file";

/// A file or folder on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// Below the root of the file system; the path is kept without its leading slash.
    Absolute(RelativePath),
    /// Below the folder of the Model's own file.
    Relative(RelativePath),
}

impl Location {
    /// Reads what stands behind `file://`.
    pub fn parse(rest: &str) -> Result<Self, BadSource> {
        if let Some(path) = rest.strip_prefix('/') {
            return below("the path behind `file:///`", path).map(Self::Absolute);
        }
        if let Some(path) = rest.strip_prefix("./") {
            return below("the path behind `file://./`", path).map(Self::Relative);
        }
        if rest.is_empty() {
            return Err(BadSource::Missing { part: "the path", example: EXAMPLE });
        }
        Err(BadSource::BadPart {
            part: "the path",
            text: rest.to_owned(),
            problem: "begins with neither `/` nor `./` (a host or `~` is not understood)",
            example: EXAMPLE,
        })
    }

    /// Where it is, for a Model whose file lies in `manifest_folder`.
    pub fn path(&self, manifest_folder: &Path) -> PathBuf {
        match self {
            Self::Absolute(path) => path.below(Path::new("/")),
            Self::Relative(path) => path.below(manifest_folder),
        }
    }
}

fn below(part: &'static str, path: &str) -> Result<RelativePath, BadSource> {
    if path.is_empty() {
        return Err(BadSource::Missing { part, example: EXAMPLE });
    }
    RelativePath::parse(path)
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(path) => write!(formatter, "/{path}"),
            Self::Relative(path) => write!(formatter, "./{path}"),
        }
    }
}
