//! Reading the files below `/sys` that decisions look at, and the machine's memory.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flexinfer_core::hardware::Memory;
use flexinfer_core::hardware::sysfs::{PATTERNS, Tree};

/// The most that is read of one file; those of the kernel are far smaller.
const FILE_LIMIT: u64 = 64 << 10;

/// The files below `root` that match the patterns; what cannot be read is left out.
pub(super) fn tree(root: &Path) -> Tree {
    PATTERNS.iter().flat_map(|pattern| matching(root, pattern)).collect()
}

fn matching(root: &Path, pattern: &str) -> Vec<(String, String)> {
    let mut found = vec![String::new()];
    for part in pattern.split('/') {
        found = found.iter().flat_map(|folder| below(root, folder, part)).collect();
    }
    found.into_iter().filter_map(|path| Some((path.clone(), content(&root.join(path))?))).collect()
}

/// The paths in `folder` whose name is `part`, where a `*` is anything.
fn below(root: &Path, folder: &str, part: &str) -> Vec<String> {
    let join =
        |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let Some((begin, end)) = part.split_once('*') else { return vec![join(part)] };
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> =
        names.filter(|name| name.starts_with(begin) && name.ends_with(end)).collect();
    names.sort();
    names.iter().map(|name| join(name)).collect()
}

fn content(path: &PathBuf) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_LIMIT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The machine's memory, by `/proc/meminfo`.
pub(super) fn machine_memory() -> Memory {
    let page = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let bytes = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    let (total, available) = (bytes("MemTotal:"), bytes("MemAvailable:"));
    Memory {
        total,
        used: total.zip(available).map(|(total, available)| total.saturating_sub(available)),
    }
}
