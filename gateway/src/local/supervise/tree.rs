//! The processes that descend from this one: an engine, its workers, and daemons that left its group.

use rustix::process::{Pid, Signal};

/// Sends `signal` to the process group `group` and to every descendant outside it. A process that
/// has ended meanwhile needs no signal, so failures to deliver one are passed over.
pub(super) fn signal_all(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, signal);
    }
    for process in descendants() {
        if let Some(pid) = Pid::from_raw(process.pid)
            && Pid::from_raw(process.group) != group
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
}

#[cfg(target_os = "linux")]
fn descendants() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let all = entries
        .flatten()
        .filter(|entry| {
            entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
        })
        .filter_map(|entry| std::fs::read(entry.path().join("stat")).ok())
        .filter_map(|stat| process_of(&String::from_utf8_lossy(&stat)))
        .collect();
    below(rustix::process::getpid().as_raw_nonzero().get(), all)
}

#[cfg(not(target_os = "linux"))]
fn descendants() -> Vec<Process> {
    Vec::new()
}

/// Reads `/proc/<pid>/stat`: `pid (name) state parent group …`, where the name may hold anything.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no /proc to read"))]
fn process_of(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(' ')?;
    let (_, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// Those of `all` that descend from `root`, parents before their children.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no /proc to read"))]
fn below(root: i32, mut all: Vec<Process>) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    loop {
        let (next, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|process| {
            process.parent == root || found.iter().any(|known| known.pid == process.parent)
        });
        if next.is_empty() {
            return found;
        }
        found.extend(next);
        all = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_confuse_the_reading() {
        let stat = "41 (my (odd) name) S 7 40 40 0 -1 4194560";
        assert_eq!(process_of(stat), Some(Process { pid: 41, parent: 7, group: 40 }));
        assert_eq!(process_of("garbage"), None);
    }

    #[test]
    fn descendants_of_descendants_are_found_in_any_order() {
        let process = |pid, parent| Process { pid, parent, group: pid };
        let all = vec![process(5, 4), process(4, 3), process(3, 1), process(9, 8), process(8, 2)];
        let found: Vec<_> = below(1, all).iter().map(|process| process.pid).collect();
        assert_eq!(found, [3, 4, 5]);
    }
}
