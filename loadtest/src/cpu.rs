//! The CPU time a program has used, with all its children, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// The kernel counts process time to user space in hundredths of a second on every architecture.
const TICK: Duration = Duration::from_millis(TICK_MILLISECONDS);
const TICK_MILLISECONDS: u64 = 10;

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

/// What all that runs on this machine has used, the kernel's own work and what a hypervisor withheld included.
pub(crate) fn used_by_all() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat").context("CPU time is read from /proc")?;
    busy(&stat).context("/proc/stat does not begin with the time of all processors")
}

/// `cpu user nice system idle iowait irq softirq steal …`, and then each processor for itself.
fn busy(stat: &str) -> Option<Duration> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks = all.take(8).map(|ticks| ticks.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let [user, nice, system, _idle, _waiting, irq, softirq, steal] = ticks.try_into().ok()?;
    let ticks = user + nice + system + irq + softirq + steal;
    Some(Duration::from_millis(TICK_MILLISECONDS * ticks))
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
    fn all_that_is_not_idle_counts() {
        let stat = "cpu  10 1 5 900 90 2 3 4 0 0\ncpu0 5 0 2 450 45 1 1 2 0 0\n";
        assert_eq!(busy(stat), Some(TICK * 25));
        assert_eq!(busy("cpu  10 1"), None);
        assert!(used_by_all().unwrap() > Duration::ZERO);
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
