//! `flexinfer-node clean`: removes a copy of weights that no Model needs any more. Without `--within` only what the
//! flash loader's own record names; with it a folder and all that is in it, if it lies where nothing but copies do.
//! Anything else is refused before anything is touched. What is gone already is as it shall be.

mod mounts;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use flexinfer_core::loading::place::{may_be_removed, may_hold_copies};

use crate::ending::Ending;
use crate::flash::copies;

/// What to remove.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The folder that `flash` was given as --dst or --alone-in: what `flash` has put there goes, and the folder if
    /// nothing else is in it
    pub folder: PathBuf,
    /// Folder that holds nothing but copies of weights: what FOLDER holds goes whole, whoever put it there, if it lies
    /// below it
    #[arg(long, env = "CLEAN_WITHIN", value_name = "DIR")]
    pub within: Option<PathBuf>,
}

/// Removes, and says what is left if anything is.
pub async fn run(arguments: Arguments) -> anyhow::Result<Ending> {
    let removing = tokio::task::spawn_blocking(move || {
        let Arguments { folder, within } = &arguments;
        let refused = || format!("{} is not removed", folder.display());
        match within {
            Some(within) => whole(folder, within).with_context(refused),
            None => copy(folder).with_context(refused),
        }
    });
    removing.await.context("the removing ended by itself")??;
    Ok(Ending::Done)
}

/// Removes the copy in `folder`, and nothing that a load has not put there.
fn copy(folder: &Path) -> anyhow::Result<()> {
    may_hold_copies(folder)?;
    let real = match folder.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        real => real?,
    };
    may_hold_copies(&real)?;
    if !copies::is_copy(&real) {
        bail!(
            "no load of `flash` has left its record there, so that nothing in it is known to be a copy"
        );
    }
    // Those below come after those above.
    copies::below(&real, None).iter().rev().try_for_each(|copy| copies::remove(copy, None))?;
    // Folders on the way to copies are nobody's now. What is mounted stays, too.
    let _left = copies::remove_empty(&real);
    if fs::read_dir(&real).is_ok_and(|mut left| left.next().is_some()) {
        tracing::warn!(path = %real.display(), "the copy is removed; files that no load has put there are left");
    }
    Ok(())
}

/// Removes `folder` with all that is in it.
fn whole(folder: &Path, within: &Path) -> anyhow::Result<()> {
    let mounts = mounts::all().context("what is mounted cannot be told")?;
    let working = std::env::current_dir().unwrap_or_default();
    let decide = |place: &Path, within: &Path| may_be_removed(place, within, &mounts, &working);
    decide(folder, within)?;
    let Some(place) = real(folder)? else { return Ok(()) };
    decide(&place, &fs::canonicalize(within)?)?;
    Ok(remove(&place)?)
}

/// Where `folder` really is: the folders on the way are looked up behind their links, a link in its own place is not.
/// `None` where nothing is.
fn real(folder: &Path) -> io::Result<Option<PathBuf>> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let found = fs::canonicalize(parent).and_then(|parent| {
        let place = parent.join(name);
        fs::symlink_metadata(&place).map(|_| place)
    });
    match found {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
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

    #[test]
    fn a_folder_behind_a_link_is_looked_up_before_it_is_decided_about() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("real/copy")).unwrap();
        std::os::unix::fs::symlink(top.join("real"), top.join("link")).unwrap();
        assert_eq!(real(&top.join("link/copy")).unwrap(), Some(top.join("real/copy")));
        assert_eq!(real(&top.join("link")).unwrap(), Some(top.join("link")));
        assert_eq!(real(&top.join("link/gone")).unwrap(), None);
        assert_eq!(real(&top.join("nowhere/gone")).unwrap(), None);
    }
}
