//! Makes folders name by name, each in the open one above: whoever puts a link on the way, and whenever, leads nothing
//! elsewhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Mode, Stat, mkdirat, unlinkat};
use rustix::io::Errno;

use super::error::FlashError;
use super::place;
use crate::inside;

/// What becomes of what is in the place of a folder and is none, such as a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoFolder {
    /// It stays, and no folder can be made.
    Stays,
    /// It goes: what it lies in is to hold one copy and nothing else.
    Goes,
}

/// Opens the folder at `place` where that is behind all links, made if it is not there. That is judged, and no link that
/// has come on the way since then is followed.
pub(super) fn folder_at(place: &Path) -> Result<File, FlashError> {
    let real = place::checked(place)?;
    real_folder(&real).map_err(|error| FlashError::writing(place, error))
}

fn real_folder(real: &Path) -> io::Result<File> {
    let mut above = inside::root()?;
    let mut names = real.components().filter_map(|name| match name {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let last = names.next_back().ok_or(io::ErrorKind::InvalidInput)?;
    for name in names {
        above = or_made(&above, name, || inside::passed(&above, name))?;
    }
    folder(&above, last, NoFolder::Stays)
}

/// The folder at `way` below `top`, made if it is not there.
pub(super) fn below(top: &File, way: &Path, other: NoFolder) -> io::Result<File> {
    way.iter().try_fold(top.try_clone()?, |above, name| folder(&above, name, other))
}

/// The folder `name` in `above`, made if it is not there.
pub(super) fn folder(above: &File, name: &OsStr, other: NoFolder) -> io::Result<File> {
    let is_none = |found: &Stat| !inside::is_folder(found);
    if other == NoFolder::Goes && inside::look(above, name)?.as_ref().is_some_and(is_none) {
        unlinkat(above, name, AtFlags::empty())?;
    }
    or_made(above, name, || inside::folder(above, Path::new(name)))
}

/// What `opened` gives, after the folder was made if it was not there.
fn or_made(above: &File, name: &OsStr, opened: impl Fn() -> io::Result<File>) -> io::Result<File> {
    match opened() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match mkdirat(above, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) | Err(Errno::EXIST) => opened(),
                Err(error) => Err(error.into()),
            }
        }
        opened => opened,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_are_made_where_they_were_judged_and_never_behind_a_link() {
        let (top, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let top = top.path().canonicalize().unwrap();
        real_folder(&top.join("a/b/c")).unwrap();
        real_folder(&top.join("a/b/c")).unwrap();
        assert!(top.join("a/b/c").is_dir());
        symlink(elsewhere.path(), top.join("link")).unwrap();
        for way in ["link", "link/made"] {
            real_folder(&top.join(way)).unwrap_err();
            let open = inside::top(&top).unwrap();
            below(&open, Path::new(way), NoFolder::Stays).unwrap_err();
        }
        // Whoever means the link names it, and it is looked up before it is judged.
        folder_at(&top.join("link/named")).unwrap();
        assert!(elsewhere.path().join("named").is_dir());
        below(&inside::top(&top).unwrap(), Path::new("link/made"), NoFolder::Goes).unwrap();
        assert!(top.join("link/made").is_dir() && !elsewhere.path().join("made").exists());
    }
}
