//! Where a host has what belongs to its drivers: the vendors' tools, which run in the host's root, and NVIDIA's
//! library, which needs nothing of its host but the C library that every program has.

use std::fs;
use std::path::{Path, PathBuf};

/// Where NVIDIA's operator keeps the root of a driver that is a container's; it has the tools then, and the host none.
const DRIVER: &str = "run/nvidia/driver";

/// Folders with tools.
const TOOLS: [&str; 7] =
    ["usr/bin", "usr/local/bin", "bin", "usr/sbin", "sbin", "opt/rocm/bin", "usr/lib/wsl/lib"];

const LIBRARY: &str = "libnvidia-ml.so.1";

/// Folders with NVIDIA's library beside that of Debian and Ubuntu: of Red Hat and SUSE, Arch, Google's nodes, NixOS and
/// WSL.
const LIBRARIES: [&str; 5] = [
    "usr/lib64",
    "usr/lib",
    "home/kubernetes/bin/nvidia/lib64",
    "run/opengl-driver/lib",
    "usr/lib/wsl/lib",
];

/// As many links in a row are followed.
const LINKS: u32 = 8;

fn roots(host: &Path) -> [PathBuf; 2] {
    [host.join(DRIVER), host.to_path_buf()]
}

/// The root that the tool called `name` runs in, and its path there.
pub(super) fn tool(host: &Path, name: &str) -> Option<(PathBuf, PathBuf)> {
    let of = |root: PathBuf| {
        let mut paths = TOOLS.iter().map(|folder| Path::new(folder).join(name));
        // A link leads where it leads in that root, not here.
        let path = paths.find(|path| fs::symlink_metadata(root.join(path)).is_ok())?;
        Some((root, Path::new("/").join(path)))
    };
    roots(host).into_iter().find_map(of)
}

/// NVIDIA's library in each place that has it.
pub(super) fn libraries(host: &Path) -> Vec<PathBuf> {
    let debian = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = || [debian.as_str()].into_iter().chain(LIBRARIES);
    let found = |root: &PathBuf| {
        let places = folders().map(|folder| Path::new(folder).join(LIBRARY));
        places.filter_map(|place| followed(root, place)).collect::<Vec<_>>()
    };
    roots(host).iter().flat_map(found).collect()
}

/// The file that `path` below `root` leads to, were `root` `/`.
fn followed(root: &Path, mut path: PathBuf) -> Option<PathBuf> {
    for _ in 0..LINKS {
        let place = root.join(&path);
        let Ok(target) = fs::read_link(&place) else { return place.is_file().then_some(place) };
        path = match target.strip_prefix("/") {
            Ok(target) => target.to_path_buf(),
            Err(_) => path.parent()?.join(target),
        };
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn host(files: &[&str], links: &[(&str, &str)]) -> tempfile::TempDir {
        let host = tempfile::tempdir().unwrap();
        let place = |path: &str| {
            let place = host.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            place
        };
        for path in files {
            fs::write(place(path), "").unwrap();
        }
        for (path, target) in links {
            symlink(target, place(path)).unwrap();
        }
        host
    }

    #[test]
    fn a_tool_is_one_of_the_drivers_container_before_the_hosts_own() {
        let host = host(&["usr/bin/nvidia-smi", "run/nvidia/driver/usr/bin/nvidia-smi"], &[]);
        let found = tool(host.path(), "nvidia-smi").unwrap();
        assert_eq!(found, (host.path().join(DRIVER), PathBuf::from("/usr/bin/nvidia-smi")));
        assert_eq!(tool(host.path(), "rocm-smi"), None);
    }

    #[test]
    fn a_tool_that_is_a_link_of_its_root_is_there() {
        let host = host(&[], &[("usr/bin/rocm-smi", "/opt/rocm/bin/rocm-smi")]);
        let found = tool(host.path(), "rocm-smi").unwrap();
        assert_eq!(found, (host.path().to_path_buf(), PathBuf::from("/usr/bin/rocm-smi")));
    }

    #[test]
    fn the_librarys_links_are_followed_in_its_own_root() {
        let links = [
            ("usr/lib64/libnvidia-ml.so.1", "/etc/alternatives/nvml"),
            ("etc/alternatives/nvml", "../../usr/lib64/libnvidia-ml.so.550"),
            ("usr/lib/libnvidia-ml.so.1", "libnvidia-ml.so.1"),
        ];
        let host = host(&["usr/lib64/libnvidia-ml.so.550"], &links);
        let found = libraries(host.path())
            .iter()
            .map(|path| path.canonicalize().unwrap())
            .collect::<Vec<_>>();
        let real = host.path().join("usr/lib64/libnvidia-ml.so.550").canonicalize().unwrap();
        assert_eq!(found, [real]);
    }
}
