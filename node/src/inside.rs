//! What lies below an open folder, reached name by name. No link on the way is followed, whoever puts it there and
//! whenever: what is written, removed or handed on lies where it seems to.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use flexinfer_core::sources::RelativePath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Folders lie no deeper than this in one another, or somebody wants to make us tumble.
const DEEPEST: usize = 200;

/// Where a file system of a disk keeps what it finds after a crash: nobody's, and in nobody's way.
pub(crate) const OF_FILE_SYSTEM: &str = "lost+found";

/// Opens the folder at `path`. Whoever named it may have meant a link.
pub(crate) fn top(path: &Path) -> io::Result<File> {
    let followed = FOLDER.difference(OFlags::NOFOLLOW);
    Ok(File::from(rustix::fs::open(path, followed, Mode::empty())?))
}

/// A folder that is only passed through need not be readable.
#[cfg(target_os = "linux")]
const PASSED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PASSED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The root, to pass through.
pub(crate) fn root() -> io::Result<File> {
    Ok(File::from(rustix::fs::open("/", PASSED, Mode::empty())?))
}

/// Opens the folder `name` in `above`, to pass through it.
pub(crate) fn passed(above: &File, name: &OsStr) -> io::Result<File> {
    Ok(File::from(openat(above, name, PASSED | OFlags::NOFOLLOW, Mode::empty())?))
}

/// Opens the folder at `real`, which was found to be there behind all links: one that has come on the way since then is
/// not followed.
pub(crate) fn real(real: &Path) -> io::Result<File> {
    let way = real.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
    let (above, name) = way.parent().zip(way.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let above = above.iter().try_fold(root()?, |above, name| passed(&above, name))?;
    folder(&above, Path::new(name))
}

/// Opens the folder at `way` below `top`.
pub(crate) fn folder(top: &File, way: &Path) -> io::Result<File> {
    let mut folder = top.try_clone()?;
    for part in way.components() {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        folder = File::from(openat(&folder, name, FOLDER, Mode::empty())?);
    }
    Ok(folder)
}

/// The folder of a file, and its name there.
pub(crate) fn split(path: &RelativePath) -> (&Path, &OsStr) {
    let parent = Path::new(path.as_str()).parent().unwrap_or(Path::new(""));
    (parent, OsStr::new(path.file_name()))
}

/// Opens the regular file `name` in `folder` to read it. Nothing else is waited for.
pub(crate) fn file(folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    if FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
        return Ok(file);
    }
    Err(io::ErrorKind::NotFound.into())
}

/// What is called `name` in `folder`; nothing where nothing is.
pub(crate) fn look(folder: &File, name: &OsStr) -> io::Result<Option<Stat>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether what was found is a folder, and no link to one.
pub(crate) fn is_folder(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode).is_dir()
}

/// The names in `folder`, and what each is.
pub(crate) fn entries(folder: &File) -> io::Result<Vec<(OsString, FileType)>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if [".", ".."].contains(&name.to_string_lossy().as_ref()) {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system tells it here.
            FileType::Unknown => match look(folder, name)? {
                Some(found) => FileType::from_raw_mode(found.st_mode),
                None => continue,
            },
            kind => kind,
        };
        entries.push((name.to_owned(), kind));
    }
    Ok(entries)
}

/// Removes the regular file `name` of `folder`; whether there was one.
pub(crate) fn remove_file(folder: &File, name: &OsStr) -> io::Result<bool> {
    let found = look(folder, name)?;
    if !found.is_some_and(|found| FileType::from_raw_mode(found.st_mode).is_file()) {
        return Ok(false);
    }
    gone(unlinkat(folder, name, AtFlags::empty()))?;
    Ok(true)
}

/// Removes the folder `name` of `folder`. What has something in it, or is mounted, stays.
pub(crate) fn remove_if_empty(folder: &File, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::BUSY | Errno::NOTDIR) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Removes the folder `name` of `folder`, which is at `path`, if there is nothing in it but folders, and those too. What
/// is on another file system is not.
pub(crate) fn remove_empty(folder: &File, name: &OsStr, path: &Path) -> io::Result<()> {
    remove(folder, name, path, Goes::folders(device(folder)?), DEEPEST)
}

/// Removes what is called `name` in `folder`, which is at `path`, with all that is in it. A link goes itself, and what
/// another file system has there stays.
pub(crate) fn remove_whole(folder: &File, name: &OsStr, path: &Path) -> io::Result<()> {
    remove(folder, name, path, Goes::all(device(folder)?, &[]), DEEPEST)
}

/// Removes in the same way all that is in `folder`, which is at `path`; what has a name of `last` only when all else in
/// its folder is gone.
pub(crate) fn remove_content(folder: &File, path: &Path, last: &[&str]) -> io::Result<()> {
    remove_in(folder, path, Goes::all(device(folder)?, last), DEEPEST)
}

/// The file system that an open file or folder is on.
pub(crate) fn device(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.dev())
}

/// What is removed, all on one file system.
#[derive(Clone, Copy)]
struct Goes<'a> {
    device: u64,
    only_folders: bool,
    last: &'a [&'a str],
}

impl<'a> Goes<'a> {
    fn folders(device: u64) -> Self {
        Self { device, only_folders: true, last: &[] }
    }

    fn all(device: u64, last: &'a [&'a str]) -> Self {
        Self { device, only_folders: false, last }
    }
}

fn remove(
    folder: &File,
    name: &OsStr,
    path: &Path,
    goes: Goes<'_>,
    depth: usize,
) -> io::Result<()> {
    let named = named(path);
    if goes.only_folders && name == OF_FILE_SYSTEM {
        return Err(named(io::ErrorKind::DirectoryNotEmpty.into()));
    }
    let inner = match openat(folder, name, FOLDER, Mode::empty()) {
        Ok(inner) => File::from(inner),
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            let removed = if goes.only_folders {
                Err(io::ErrorKind::NotADirectory.into())
            } else {
                gone(unlinkat(folder, name, AtFlags::empty()))
            };
            return removed.map_err(named);
        }
        Err(error) => return Err(named(error.into())),
    };
    if depth == 0 {
        return Err(named(io::Error::other("too many folders lie in one another")));
    }
    if device(&inner)? != goes.device {
        return Err(named(io::Error::other("another file system is mounted there")));
    }
    remove_in(&inner, path, goes, depth - 1)?;
    gone(unlinkat(folder, name, AtFlags::REMOVEDIR)).map_err(named)
}

fn remove_in(folder: &File, path: &Path, goes: Goes<'_>, depth: usize) -> io::Result<()> {
    let mut entries = entries(folder).map_err(named(path))?;
    entries.sort_by_key(|(name, _)| goes.last.iter().any(|last| name == *last));
    for (name, _) in entries {
        // What is no folder is not removed with folders, and says so itself.
        remove(folder, &name, &path.join(&name), goes, depth)?;
    }
    Ok(())
}

/// What is gone already is well: somebody else may do the same.
fn gone(removed: rustix::io::Result<()>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Says of an error which file it is about.
pub(crate) fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + use<> {
    let path = path.to_path_buf();
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_way_leads_through_a_link_or_out_of_the_folder() {
        let (inner, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(inner.path().join("a/b")).unwrap();
        fs::create_dir(other.path().join("b")).unwrap();
        symlink(other.path(), inner.path().join("link")).unwrap();
        let top = top(inner.path()).unwrap();
        folder(&top, Path::new("a/b")).unwrap();
        folder(&top, Path::new("")).unwrap();
        for way in ["link", "link/b", "a/../a", "/", "..", "none"] {
            folder(&top, Path::new(way)).unwrap_err();
        }
    }

    #[test]
    fn no_link_is_followed_that_came_after_a_place_was_looked_up() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("a/b")).unwrap();
        real(&place.join("a/b")).unwrap();
        fs::rename(place.join("a"), place.join("moved")).unwrap();
        symlink("moved", place.join("a")).unwrap();
        symlink("b", place.join("moved/c")).unwrap();
        for link in ["a", "a/b", "moved/c"] {
            real(&place.join(link)).unwrap_err();
        }
        for no_place in ["/", "", "moved"] {
            real(Path::new(no_place)).unwrap_err();
        }
    }

    #[test]
    fn only_folders_without_files_count_as_empty_and_links_are_no_folders() {
        let (inner, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (top, path) = (top(inner.path()).unwrap(), inner.path().join("a"));
        let remove = || remove_empty(&top, OsStr::new("a"), &path);
        fs::create_dir_all(path.join("b/c")).unwrap();
        remove().unwrap();
        assert!(!path.exists());
        remove().unwrap();
        fs::create_dir_all(other.path().join("empty")).unwrap();
        fs::create_dir_all(path.join("b/c")).unwrap();
        symlink(other.path(), path.join("link")).unwrap();
        let said = remove().unwrap_err().to_string();
        assert!(said.contains("a/link"), "{said}");
        assert!(other.path().join("empty").exists(), "nothing goes behind a link");
        fs::remove_file(path.join("link")).unwrap();
        fs::create_dir_all(path.join("lost+found")).unwrap();
        remove().unwrap_err();
        assert!(path.join("lost+found").exists());
    }

    #[test]
    fn a_folder_goes_with_all_in_it_and_what_a_link_leads_to_stays() {
        let (inner, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = |name: &str| inner.path().join(name);
        fs::create_dir_all(place("llama/sub")).unwrap();
        fs::write(other.path().join("a"), "a").unwrap();
        fs::write(place("llama/sub/b"), "b").unwrap();
        symlink(other.path(), place("llama/link")).unwrap();
        symlink(other.path(), place("link")).unwrap();
        let top = top(inner.path()).unwrap();
        for name in ["llama", "link", "llama"] {
            remove_whole(&top, OsStr::new(name), &place(name)).unwrap();
            assert!(fs::symlink_metadata(place(name)).is_err(), "{name}");
        }
        assert!(other.path().join("a").exists());
    }

    #[test]
    fn what_is_to_go_last_is_there_as_long_as_anything_else_is() {
        let inner = tempfile::tempdir().unwrap();
        let top = top(inner.path()).unwrap();
        let write = |name: &str| {
            let place = inner.path().join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, "a").unwrap();
        };
        for nth in 0..20 {
            write(&format!("{nth}"));
            write(&format!("own/{nth}"));
        }
        write("own/lock");
        let entries_deep = (0..=DEEPEST).map(|_| "z").collect::<Vec<_>>().join("/");
        fs::create_dir_all(inner.path().join(entries_deep)).unwrap();
        remove_content(&top, inner.path(), &["own", "lock"]).unwrap_err();
        assert!(inner.path().join("own/lock").exists() && inner.path().join("own/0").exists());
        fs::remove_dir_all(inner.path().join("z")).unwrap();
        remove_content(&top, inner.path(), &["own", "lock"]).unwrap();
        assert_eq!(fs::read_dir(inner.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_file_is_neither_read_nor_waited_for() {
        let inner = tempfile::tempdir().unwrap();
        let top = top(inner.path()).unwrap();
        fs::write(inner.path().join("file"), "a").unwrap();
        symlink("file", inner.path().join("link")).unwrap();
        fs::create_dir(inner.path().join("folder")).unwrap();
        let pipe = inner.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        file(&top, OsStr::new("file")).unwrap();
        for name in ["link", "folder", "pipe", "none"] {
            file(&top, OsStr::new(name)).unwrap_err();
            assert!(!remove_file(&top, OsStr::new(name)).unwrap(), "{name}");
        }
        assert!(remove_file(&top, OsStr::new("file")).unwrap());
    }
}
