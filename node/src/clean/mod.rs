//! `flexinfer-node clean`: removes a folder and all that is in it, such as the copy of weights in a node's memory
//! that no Model needs any more. What is gone already is as it shall be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::ending::Ending;

/// What to remove.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The folder
    pub folder: PathBuf,
}

/// Removes, and says what is left if anything is.
pub async fn run(arguments: Arguments) -> anyhow::Result<Ending> {
    let folder = arguments.folder;
    let removing = tokio::task::spawn_blocking(move || {
        remove(&folder).with_context(|| format!("{} cannot be removed", folder.display()))
    });
    removing.await.context("the removing ended by itself")??;
    Ok(Ending::Done)
}

/// A link is removed itself, never what it leads to.
fn remove(folder: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_all_in_it_and_what_a_link_leads_to_stays() {
        let top = tempfile::tempdir().unwrap();
        let (folder, other) = (top.path().join("llama"), top.path().join("other"));
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("a"), "a").unwrap();
        fs::write(folder.join("sub/b"), "b").unwrap();
        std::os::unix::fs::symlink(&other, folder.join("link")).unwrap();
        let link = top.path().join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        remove(&folder).unwrap();
        remove(&link).unwrap();
        assert!(!folder.exists() && !link.exists() && other.join("a").exists());
        remove(&folder).unwrap();
    }
}
