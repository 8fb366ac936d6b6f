//! Where copies of weights may be put, and what may be removed whole. What is removed is gone for good, most often as
//! root: a place that is anything else by mistake must be refused before anything is touched.

use std::path::{Component, Path, PathBuf};

/// Folders of the system: no weights belong there, at any depth.
const SYSTEM: [&str; 10] =
    ["bin", "boot", "dev", "etc", "proc", "sbin", "sys", "usr/bin", "usr/sbin", "usr/libexec"];

/// Folders that hold what belongs to many: weights may have a folder of their own below them.
const OF_ALL: [&str; 7] = ["dev/shm", "home", "root", "run", "tmp", "usr", "var"];

/// Where the system's libraries are: `lib`, `lib64` and their like.
const LIBRARIES: [&str; 2] = ["lib", "usr/lib"];

/// Why a place is no place for weights, or not to be removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Not a path from the root on.
    #[error("it has to be written from the root on, with neither `.` nor `..` in it")]
    NotPlain,
    /// The root, or a folder that the system or everybody uses.
    #[error("that is a folder of the system's; name a folder of its own for the weights")]
    System,
    /// The folder that it is to be in cannot hold copies alone.
    #[error("{} is no folder that can hold copies alone", .0.display())]
    TooWide(PathBuf),
    /// It is not below the folder that it was to be in.
    #[error("it is not below {}, and only what is below it may be removed whole", .0.display())]
    NotWithin(PathBuf),
    /// Something else is mounted at it or below it.
    #[error("{} is mounted there, which may hold what is somebody else's", .0.display())]
    Mounted(PathBuf),
    /// This process works in it.
    #[error("this program runs in that folder")]
    WorkedIn,
}

/// Whether `place` may be the folder of a copy, or be looked through for copies. It is to be the real one, behind all
/// links.
pub fn may_hold_copies(place: &Path) -> Result<(), Unfit> {
    let below = below_the_root(place)?;
    let of_all = OF_ALL.iter().any(|folder| below == Path::new(folder));
    if of_all || is_the_systems(below) { Err(Unfit::System) } else { Ok(()) }
}

/// Whether `place` may be removed with all that is in it: only below `within`, a folder that is known to hold nothing
/// but copies, and nowhere where that cannot be. `mounts` are all mount points, `working` is this process's folder. All
/// paths are to be the real ones, behind all links.
pub fn may_be_removed(
    place: &Path,
    within: &Path,
    mounts: &[PathBuf],
    working: &Path,
) -> Result<(), Unfit> {
    let below = below_the_root(place)?;
    below_the_root(within).map_err(|_| Unfit::TooWide(within.to_path_buf()))?;
    if !place.starts_with(within) || place == within {
        return Err(Unfit::NotWithin(within.to_path_buf()));
    }
    let in_memory = below.strip_prefix("dev/shm").is_ok_and(|name| !name.as_os_str().is_empty());
    let of_all = OF_ALL.iter().any(|folder| below.starts_with(folder));
    if !in_memory && (of_all || is_the_systems(below)) {
        return Err(Unfit::System);
    }
    if let Some(mount) = mounts.iter().find(|mount| mount.starts_with(place)) {
        return Err(Unfit::Mounted(mount.clone()));
    }
    if working.starts_with(place) { Err(Unfit::WorkedIn) } else { Ok(()) }
}

/// Whether a record that the user `writer` has left may say of a file, which `owner` tells the user of, that a load has
/// put it there. Who works as root believes nobody of files that are a third one's: whoever may write to a folder that
/// is shared could have root remove what he could not.
pub fn may_name(writer: u32, user: u32, owner: impl FnOnce() -> Option<u32>) -> bool {
    const ROOT: u32 = 0;
    user != ROOT || writer == ROOT || owner().is_none_or(|owner| owner == writer)
}

/// The path without its slash at the beginning; never empty.
fn below_the_root(place: &Path) -> Result<&Path, Unfit> {
    // `components` would pass over a dot in the middle.
    let dots = place.to_string_lossy().split('/').any(|name| [".", ".."].contains(&name));
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let below = place.strip_prefix("/").map_err(|_| Unfit::NotPlain)?;
    if dots || !place.components().all(plain) {
        return Err(Unfit::NotPlain);
    }
    if below.as_os_str().is_empty() { Err(Unfit::System) } else { Ok(below) }
}

fn is_the_systems(below: &Path) -> bool {
    let library = |folder: &&str| {
        let text = below.to_string_lossy();
        let rest = text.strip_prefix(*folder).map(|rest| rest.split('/').next().unwrap_or(rest));
        rest.is_some_and(|bits| bits.chars().all(|bit| "x0123456789".contains(bit)))
    };
    let in_memory = below.starts_with("dev/shm");
    let folder = SYSTEM.iter().any(|folder| below.starts_with(folder));
    (folder && !in_memory) || LIBRARIES.iter().any(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(place: &str, within: &str) -> Result<(), Unfit> {
        let mounts = ["/", "/memory", "/dev/shm", "/dev", "/memory/held/by/others"];
        let mounts = mounts.map(PathBuf::from);
        may_be_removed(Path::new(place), Path::new(within), &mounts, Path::new("/memory/work/in"))
    }

    #[test]
    fn nothing_of_the_systems_is_a_place_for_weights() {
        for place in [
            "/",
            "//",
            "/etc",
            "/etc/",
            "/etc/weights",
            "/usr",
            "/usr/bin",
            "/usr/lib/x",
            "/lib",
            "/lib64/weights",
            "/libx32",
            "/usr/lib64",
            "/bin",
            "/sbin",
            "/boot/x",
            "/proc/1",
            "/sys",
            "/dev",
            "/dev/shm",
            "/dev/sda",
            "/home",
            "/root",
            "/run",
            "/tmp",
            "/var",
        ] {
            assert_eq!(may_hold_copies(Path::new(place)), Err(Unfit::System), "{place}");
        }
        for place in ["", ".", "weights", "./weights", "/models/..", "/models/./a", "../a"] {
            assert_eq!(may_hold_copies(Path::new(place)), Err(Unfit::NotPlain), "{place}");
        }
        for place in [
            "/models",
            "/weights",
            "/memory/llama",
            "/mnt",
            "/dev/shm/flexinfer",
            "/library/a",
            "/home/ada/models",
            "/tmp/copy",
            "/var/lib/models",
            "/usr/share/models",
            "/libs",
        ] {
            assert_eq!(may_hold_copies(Path::new(place)), Ok(()), "{place}");
        }
    }

    #[test]
    fn whole_is_removed_only_what_lies_in_a_folder_of_copies() {
        let within = |folder: &str| Err(Unfit::NotWithin(PathBuf::from(folder)));
        assert_eq!(removed("/memory/llama", "/memory"), Ok(()));
        assert_eq!(removed("/dev/shm/flexinfer/models/llama", "/dev/shm/flexinfer"), Ok(()));
        assert_eq!(removed("/dev/shm/copy", "/dev/shm"), Ok(()));
        assert_eq!(removed("/memory", "/memory"), within("/memory"));
        assert_eq!(removed("/memories/llama", "/memory"), within("/memory"));
        assert_eq!(removed("/models/llama", "/memory"), within("/memory"));
        for place in ["/models", "/etc", "/home", "/"] {
            let refused = removed(place, "/").unwrap_err();
            assert!(matches!(refused, Unfit::System | Unfit::TooWide(_)), "{place}: {refused}");
        }
        for folder in ["/etc", "/home", "/usr", "/var", "/root", "/tmp", "/run", "/lib64", "/dev"] {
            let place = format!("{folder}/weights/a");
            assert_eq!(removed(&place, folder), Err(Unfit::System), "{place}");
        }
        for place in ["", "llama", "memory/llama", "/memory/../etc", "/memory/./llama"] {
            assert_eq!(removed(place, "/memory"), Err(Unfit::NotPlain), "{place}");
        }
        assert_eq!(removed("/memory/llama", "memory"), Err(Unfit::TooWide("memory".into())));
    }

    #[test]
    fn root_believes_a_record_only_of_its_writers_own_files() {
        let (root, ada, bob) = (0, 1000, 1001);
        let may = |writer, user, owner| may_name(writer, user, || Some(owner));
        assert!(may(root, root, ada) && may(ada, root, ada) && may(ada, bob, root));
        assert!(!may(ada, root, bob) && !may(ada, root, root));
        assert!(may_name(ada, root, || None), "what is not there is nobody's");
    }

    #[test]
    fn nothing_goes_that_is_mounted_or_worked_in() {
        let mount = PathBuf::from("/memory/held/by/others");
        for place in ["/memory/held", "/memory/held/by", "/memory/held/by/others"] {
            assert_eq!(removed(place, "/memory"), Err(Unfit::Mounted(mount.clone())), "{place}");
        }
        assert_eq!(removed("/dev/shm", "/dev"), Err(Unfit::System));
        for place in ["/memory/work", "/memory/work/in"] {
            assert_eq!(removed(place, "/memory"), Err(Unfit::WorkedIn), "{place}");
        }
        assert_eq!(removed("/memory/work/in/it", "/memory"), Ok(()));
    }
}
