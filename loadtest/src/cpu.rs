//! The CPU time a program has used, with all its children, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// The kernel counts process time to user space in hundredths of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

struct Process {
    parent: u32,
    ticks: u32,
}

/// User and system time of a process and of those below it that are still alive.
pub(crate) fn used(pid: u32) -> Result<Duration> {
    let processes = processes()?;
    let mut open = vec![pid];
    let mut ticks = 0;
    while let Some(pid) = open.pop() {
        let Some(process) = processes.get(&pid) else { continue };
        ticks += process.ticks;
        let children = processes.iter().filter(|(_, other)| other.parent == pid);
        open.extend(children.map(|(pid, _)| *pid));
    }
    Ok(TICK * ticks)
}

fn processes() -> Result<BTreeMap<u32, Process>> {
    let folder =
        fs::read_dir("/proc").context("CPU time is read from /proc, which only Linux has")?;
    let pids = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // One may end between the listing and the look.
    Ok(pids
        .filter_map(|pid| {
            Some((pid, parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
        })
        .collect())
}

/// `pid (name) state ppid …`, where the name may hold anything, spaces and brackets too.
fn parse(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some(Process { parent: number(1)?, ticks: number(11)? + number(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (odd) name) S 3 7 7 0 -1 0 0 0 0 0 40 2 0 0 20 0 1 0 5 0 0";
        let process = parse(stat).unwrap();
        assert_eq!((process.parent, process.ticks), (3, 42));
    }

    #[test]
    fn work_done_is_seen() {
        let before = used(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while used(std::process::id()).unwrap() < before + TICK {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(used(std::process::id()).unwrap() > before);
    }
}
