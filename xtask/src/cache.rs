//! What is costly to get is kept outside the checkout, in a folder named by what was asked for: another
//! version is another folder, and a folder without its mark was not finished and is made again.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// `$XDG_CACHE_HOME/flexinfer`, else `~/.cache/flexinfer`.
pub(crate) fn folder() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(base.join("flexinfer"))
}

/// The folder for `name` made from `ingredients`: taken as it is when finished, else emptied and filled by
/// `make`, which is given the folder itself (a virtual environment cannot be moved afterwards).
pub(crate) fn kept(
    name: &str,
    ingredients: &[&str],
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let place = folder()?.join(format!("{name}-{}", key(ingredients)));
    let mark = place.join(".finished");
    if mark.exists() {
        return Ok(place);
    }
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("cannot empty {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    make(&place)?;
    fs::write(&mark, ingredients.join("\n"))
        .with_context(|| format!("cannot write {}", mark.display()))?;
    Ok(place)
}

/// The first file with an extension, at any depth.
pub(crate) fn first_with_extension(folder: &Path, extension: &str) -> Result<PathBuf> {
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                return Ok(path);
            }
        }
    }
    bail!("there is no .{extension} file in {}", folder.display())
}

fn key(ingredients: &[&str]) -> String {
    let digest: [u8; 32] = Sha256::digest(ingredients.join("\n").as_bytes()).into();
    let start = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{start:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_has_another_key() {
        assert_eq!(key(&["openai==3.57.0"]), key(&["openai==3.57.0"]));
        assert_ne!(key(&["openai==3.57.0"]), key(&["openai==3.57.1"]));
        assert_ne!(key(&["a", "b"]), key(&["ab"]));
    }
}
