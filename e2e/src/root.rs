//! The files of one container: the machine's as they are, what the container writes over them gone with it,
//! and its volumes where it asks for them. Entered by `flexinfer-e2e-container`, in a mount namespace made for it.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::chroot;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind_recursive, mount_remount, unmount,
};
use serde::{Deserialize, Serialize};

/// Where the machine's files are while volumes are put in place.
const MACHINE: &str = "/.machine";

/// What a container sees as `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// An empty folder on the machine. What is mounted there is seen by this container alone.
    pub folder: PathBuf,
    /// What is mounted on the machine beside its own `/`, each with all that is mounted in it.
    pub carried: Vec<PathBuf>,
    pub mounts: Vec<Mount>,
    /// Where its program starts; `/` without one.
    pub directory: Option<PathBuf>,
}

/// A volume in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// A file or folder of the machine.
    pub source: PathBuf,
    pub target: PathBuf,
    pub read_only: bool,
}

impl Root {
    /// Makes this process see it. Only for one whose mounts nobody shares: nothing is undone on failure.
    pub fn enter(&self) -> io::Result<()> {
        let root = self.layered()?;
        for folder in &self.carried {
            let target = root.join(folder.strip_prefix("/").unwrap_or(folder));
            place(folder, &target)?;
            mount_bind_recursive(folder, &target)?;
        }
        let machine = root.join(MACHINE.trim_start_matches('/'));
        fs::create_dir(&machine)?;
        mount_bind_recursive("/", &machine)?;
        // From here on a link such as /var/run leads to the container's own folder.
        chroot(&root)?;
        std::env::set_current_dir("/")?;
        let mut mounts: Vec<&Mount> = self.mounts.iter().collect();
        mounts.sort_by_key(|mount| mount.target.components().count());
        mounts.into_iter().try_for_each(Mount::put)?;
        unmount(MACHINE, UnmountFlags::DETACH)?;
        fs::remove_dir(MACHINE)?;
        let directory = self.directory.as_deref().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory)?;
        std::env::set_current_dir(directory)
    }

    /// The machine's `/`, with changes kept in memory.
    fn layered(&self) -> io::Result<PathBuf> {
        mount("none", &self.folder, "tmpfs", MountFlags::empty(), None)?;
        let [changes, work, root] = ["changes", "work", "root"].map(|name| self.folder.join(name));
        for folder in [&changes, &work, &root] {
            fs::create_dir(folder)?;
        }
        let options =
            format!("lowerdir=/,upperdir={},workdir={}", changes.display(), work.display());
        let options = CString::new(options)?;
        mount("none", &root, "overlay", MountFlags::empty(), options.as_c_str())?;
        Ok(root)
    }
}

impl Mount {
    fn put(&self) -> io::Result<()> {
        let source = self.source.strip_prefix("/").unwrap_or(&self.source);
        let source = Path::new(MACHINE).join(source);
        place(&source, &self.target)?;
        mount_bind_recursive(&source, &self.target)?;
        if self.read_only {
            let flags = MountFlags::BIND | MountFlags::RDONLY;
            mount_remount(&self.target, flags, c"")?;
        }
        Ok(())
    }
}

/// Makes what a mount can lie on: a folder for a folder, a file for a file.
fn place(source: &Path, target: &Path) -> io::Result<()> {
    if source.is_dir() {
        return fs::create_dir_all(target);
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    File::options().create(true).append(true).open(target).map(drop)
}

/// What is mounted on this machine, each once: not what is mounted inside another of them, and not `/`.
pub(crate) fn mounted() -> io::Result<Vec<PathBuf>> {
    Ok(outermost(&fs::read_to_string("/proc/self/mountinfo")?))
}

fn outermost(mounts: &str) -> Vec<PathBuf> {
    let paths = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let mut paths: Vec<PathBuf> = paths.filter(|path| *path != "/").map(PathBuf::from).collect();
    paths.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !kept.iter().any(|outer| path.starts_with(outer)) && path.exists() {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_inside_another_comes_with_it() {
        let mounts = "1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / /proc rw - proc x rw\n\
                      3 2 0:3 / /proc/sys rw - proc x rw\n4 1 0:4 / /dev rw - dev x rw\n";
        assert_eq!(outermost(mounts), [PathBuf::from("/dev"), PathBuf::from("/proc")]);
    }
}
