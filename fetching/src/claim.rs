//! Who owns a partial file, told by its name, so that two downloads never write the same file even
//! where locks do not work (LOAD-02).
//!
//! `<key>.partial` belongs to nobody; `<key>.<owner>.partial` is being written. Taking one is a
//! rename, which one of several takers wins on every file system.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, test_kill_process};

/// A partial file of another machine that has not grown for this long has lost its owner.
const QUIET: Duration = Duration::from_secs(60);

const SUFFIX: &str = ".partial";

/// A name that no other download has, here or elsewhere: `<count>-<start>-<pid>-<place>`.
pub(crate) fn owner() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{count}-{}-{}-{}", start(), std::process::id(), place())
}

/// The file that belongs to nobody.
pub(crate) fn free(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{key}{SUFFIX}"))
}

/// Makes the partial file of `key` ours: a free one, else an abandoned one, else a new one.
pub(crate) fn claim(folder: &Path, key: &str) -> io::Result<PathBuf> {
    let ours = folder.join(format!("{key}.{}{SUFFIX}", owner()));
    if fs::rename(free(folder, key), &ours).is_ok() {
        return Ok(ours);
    }
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| owner_in(name, key));
        if owner.is_some_and(|owner| abandoned(owner, &entry.path()))
            && fs::rename(entry.path(), &ours).is_ok()
        {
            return Ok(ours);
        }
    }
    fs::File::create_new(&ours)?;
    Ok(ours)
}

/// Gives a claimed file back for the next who wants it. Of two, the longer one stays.
pub(crate) fn release(ours: &Path, folder: &Path, key: &str) -> io::Result<()> {
    let free = free(folder, key);
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    if length(ours) == 0 || length(&free) >= length(ours) {
        return fs::remove_file(ours);
    }
    fs::rename(ours, free)
}

/// The length of the longest partial file of `key`, whoever owns it.
pub(crate) fn longest(folder: &Path, key: &str) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of_key = |name: &str| name.starts_with(key) && name.ends_with(SUFFIX);
    let files = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(of_key));
    files.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).max().unwrap_or(0)
}

fn owner_in<'a>(name: &'a str, key: &str) -> Option<&'a str> {
    name.strip_prefix(key)?.strip_prefix('.')?.strip_suffix(SUFFIX)
}

/// Whether nobody writes the file of `owner` any more.
fn abandoned(owner: &str, path: &Path) -> bool {
    let mut parts = owner.splitn(4, '-').skip(1);
    let (Some(began), Some(pid), Some(at)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    if at == place() {
        let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) else { return false };
        let is_us = pid == rustix::process::getpid();
        return if is_us { began != start() } else { !runs(pid) };
    }
    let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_some_and(|age| age > QUIET)
}

fn runs(pid: Pid) -> bool {
    // Any other error, such as not being allowed to ask, comes from a process that is there.
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

/// When this process began to download: tells it from an earlier one with the same id.
fn start() -> &'static str {
    static START: OnceLock<String> = OnceLock::new();
    START.get_or_init(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default().as_nanos().to_string()
    })
}

/// Where process ids mean the same as here: this boot of this machine, and this container.
fn place() -> &'static str {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE.get_or_init(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let container = fs::read_link("/proc/self/ns/pid");
        let text = match (boot, container) {
            (Ok(boot), Ok(container)) => format!("{boot}{}", container.display()),
            // Elsewhere than on Linux all processes are taken to be on one machine.
            _ => "here".to_owned(),
        };
        text.chars().filter(char::is_ascii_alphanumeric).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(folder: &Path, owner: &str, text: &str) -> PathBuf {
        let path = folder.join(format!("k.{owner}{SUFFIX}"));
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_free_file_is_taken_by_one_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(free(folder.path(), "k"), "abc").unwrap();
        let first = claim(folder.path(), "k").unwrap();
        let second = claim(folder.path(), "k").unwrap();
        assert_eq!(fs::read_to_string(&first).unwrap(), "abc");
        assert_eq!(fs::read_to_string(&second).unwrap(), "", "the second begins its own");
        release(&first, folder.path(), "k").unwrap();
        release(&second, folder.path(), "k").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(free(folder.path(), "k")).unwrap(), "abc");
    }

    #[test]
    fn load_02_only_files_that_nobody_writes_are_taken_over() {
        let pid = std::process::id();
        let gone = i32::MAX;
        for (owner, taken, why) in [
            (format!("0-{}-{pid}-{}", start(), place()), false, "ours, still written"),
            (format!("0-1-{pid}-{}", place()), true, "an earlier process with our id"),
            (format!("0-1-1-{}", place()), false, "a process that runs"),
            (format!("0-1-{gone}-{}", place()), true, "a process that is gone"),
            ("0-1-1-elsewhere".to_owned(), false, "another machine, just written"),
            ("strange".to_owned(), false, "a name that we never wrote"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let theirs = named(folder.path(), &owner, "abc");
            let ours = claim(folder.path(), "k").unwrap();
            assert_eq!(!theirs.exists(), taken, "{why}");
            assert_eq!(fs::read_to_string(ours).unwrap() == "abc", taken, "{why}");
        }
    }

    #[test]
    fn a_quiet_file_of_another_machine_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let theirs = named(folder.path(), "0-1-1-elsewhere", "abc");
        let long_ago = SystemTime::now() - QUIET * 2;
        fs::File::options().write(true).open(&theirs).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(fs::read_to_string(claim(folder.path(), "k").unwrap()).unwrap(), "abc");
    }
}
