//! Processes as `/proc` shows them.

use std::fs;

/// The processes whose parent is `parent`.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| status_of(*pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

/// Whether the process runs; one that only waits to be collected does not.
pub(crate) fn runs(pid: u32) -> bool {
    status_of(pid).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// State and parent.
fn status_of(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // One that has ended meanwhile is as good.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
