//! A path below some folder that cannot leave it: what sources, hubs and configuration may name.

use std::fmt;
use std::path::{Path, PathBuf};

use super::BadSource;

/// A relative path of one or more names joined by `/`, none of which is empty, `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(String);

impl RelativePath {
    /// Checks `text`. One slash at its end is dropped; one at its beginning is refused.
    pub fn parse(text: &str) -> Result<Self, BadSource> {
        let path = text.strip_suffix('/').unwrap_or(text);
        let refused = |problem| Err(BadSource::BadPath { path: text.to_owned(), problem });
        if path.starts_with('/') {
            return refused("begins with a slash; write it relative to its folder");
        }
        if path.contains(['\\', '\0']) || path.chars().any(char::is_control) {
            return refused("has a backslash or a control character in it; use plain slashes");
        }
        for name in path.split('/') {
            match name {
                "" => return refused("has an empty name in it; remove the doubled slash"),
                "." | ".." => {
                    return refused("has `.` or `..` in it; name the place directly");
                }
                _ => {}
            }
        }
        Ok(Self(path.to_owned()))
    }

    /// A file's name that is known to be one.
    pub(super) fn plain(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// The path as text, with `/` between its names.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the path, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The last name of the path.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// This path below `folder`.
    pub fn below(&self, folder: &Path) -> PathBuf {
        let mut path = PathBuf::with_capacity(folder.as_os_str().len() + 1 + self.0.len());
        path.push(folder);
        self.names().for_each(|name| path.push(name));
        path
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
