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
use crate::flash::copies::Copies;
use crate::inside;

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
    let real = match folder.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        real => real?,
    };
    may_hold_copies(&real)?;
    let (copies, itself) = (Copies::at(&real)?, Path::new(""));
    if !copies.is_at(itself) {
        bail!(
            "no load of `flash` has left its record there, so that nothing in it is known to be a copy"
        );
    }
    // Those below come after it.
    for copy in copies.with_itself().iter().rev() {
        copies.remove(copy, None)?;
        copies.remove_above(copy)?;
    }
    if copies.is_recorded(itself) {
        bail!("a part of the copy is on another file system, and is left");
    }
    if fs::read_dir(&real).is_ok_and(|mut left| left.next().is_some()) {
        let what = match copies.find(None).as_slice() {
            [] => "files that no load has put there are left",
            _ => "another copy below it is left, and whatever else is there",
        };
        tracing::warn!(path = %real.display(), "the copy is removed; {what}");
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
    let within = fs::canonicalize(within)?;
    decide(&place, &within)?;
    let Some((above, name)) = place.strip_prefix(&within)?.parent().zip(place.file_name()) else {
        bail!("it has no name");
    };
    let folder = inside::real(&within).and_then(|top| inside::folder(&top, above))?;
    let Ok(held) = inside::folder(&folder, Path::new(name)) else {
        return Ok(inside::remove_whole(&folder, name, &place)?);
    };
    if inside::device(&held)? != inside::device(&folder)? {
        bail!("another file system is mounted there");
    }
    Copies::of(held, &place)?.remove_all()?;
    // What a load has put there since then stays.
    Ok(inside::remove_empty(&folder, name, &place)?)
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_on_the_way_and_none_in_the_folders_own_place() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("memory/llama")).unwrap();
        symlink(top.join("memory"), top.join("link")).unwrap();
        symlink("llama", top.join("memory/alias")).unwrap();
        let found = |place: &str| real(&top.join(place)).unwrap();
        assert_eq!(found("link/llama"), Some(top.join("memory/llama")));
        assert_eq!(found("link/alias"), Some(top.join("memory/alias")));
        for place in ["memory/none", "none/llama", "link/none/llama"] {
            assert_eq!(found(place), None, "{place}");
        }
        // These name no place in a folder.
        for place in ["/", "memory/.."] {
            real(&top.join(place)).unwrap_err();
        }
    }
}
