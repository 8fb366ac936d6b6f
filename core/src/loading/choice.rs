//! Which files of a source are wanted.

use std::collections::BTreeSet;

use super::Found;
use crate::sources::RelativePath;
use crate::sources::download::pattern;

/// Folders that are never weights: caches of tools, versions of files, and our own records.
const NEVER: [&str; 4] = [".cache/", ".git/", ".flexinfer/", ".flash/"];

/// The end of files that a load, ours or the original's, has left unfinished.
const UNFINISHED: &str = ".flash-tmp";

/// What is not to be copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// `FLASH_EXCLUDE`. A pattern that ends with a slash is a folder, at any depth; one with `*`, `?`
    /// or `[` is compared with the path and with the name; any other is what the path or the name
    /// begins with.
    pub exclude: Vec<String>,
    /// `FLASH_ONLY`: if any, only what one of these patterns names, in the same way.
    pub only: Vec<String>,
    /// `FLASH_VARIANT`, such as `fp16`: where a file has a sibling of this variant
    /// (`x.safetensors` beside `x.fp16.safetensors`), only the sibling is wanted.
    pub variant: Option<String>,
}

impl Wishes {
    /// Whether the file at `path` is left out by its name alone.
    pub fn leaves_out(&self, path: &RelativePath) -> bool {
        if !self.only.is_empty() && !self.only.iter().any(|pattern| names(pattern, path)) {
            return true;
        }
        let mut given = self.exclude.iter().map(String::as_str).chain(NEVER);
        path.as_str().ends_with(UNFINISHED) || given.any(|pattern| names(pattern, path))
    }

    /// Whether nothing below the folder at `path` is wanted.
    pub fn leaves_out_folder(&self, path: &RelativePath) -> bool {
        let given = self.exclude.iter().map(String::as_str);
        let mut folders = given.chain(NEVER).filter_map(|pattern| pattern.strip_suffix('/'));
        folders.any(|folder| ends_with_names(path.as_str(), folder))
    }

    /// The files of `found` that are wanted.
    pub fn choose<F: AsRef<Found>>(&self, mut found: Vec<F>) -> Vec<F> {
        found.retain(|file| !self.leaves_out(&file.as_ref().path));
        let Some(variant) = self.variant.as_deref().filter(|variant| !variant.is_empty()) else {
            return found;
        };
        let replaced = |file: &F| without(file.as_ref().path.as_str(), variant);
        let replaced = found.iter().filter_map(replaced).collect::<BTreeSet<_>>();
        found.retain(|file| !replaced.contains(file.as_ref().path.as_str()));
        found
    }
}

fn names(pattern: &str, path: &RelativePath) -> bool {
    if let Some(folder) = pattern.strip_suffix('/') {
        let path = path.as_str();
        let parents = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        return parents.into_iter().any(|parent| ends_with_names(parent, folder));
    }
    let (path, name) = (path.as_str(), path.file_name());
    if pattern.contains(['*', '?', '[']) {
        return pattern::matches(pattern, path) || pattern::matches(pattern, name);
    }
    !pattern.is_empty() && (path.starts_with(pattern) || name.starts_with(pattern))
}

/// Whether the last names of `path` are those of `folder`.
fn ends_with_names(path: &str, folder: &str) -> bool {
    let before = path.strip_suffix(folder);
    !folder.is_empty() && before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// The name that a file of the variant has without it: `x.safetensors` for `x.fp16.safetensors`, and
/// `x-00001-of-00002.safetensors` for `x.fp16-00001-of-00002.safetensors`.
fn without(path: &str, variant: &str) -> Option<String> {
    let name_at = path.rfind('/').map_or(0, |slash| slash + 1);
    let (folder, name) = path.split_at_checked(name_at)?;
    let mark = format!(".{variant}");
    let ends = |behind: &str| behind.starts_with(['.', '-']);
    let (at, _) =
        name.match_indices(&mark).find(|(at, _)| name.get(at + mark.len()..).is_some_and(ends))?;
    Some(format!("{folder}{}{}", name.get(..at)?, name.get(at + mark.len()..)?))
}
