//! The memory of a process that is in RAM, from `/proc`.

use anyhow::{Context, Result};

/// Resident bytes of one process, its children apart.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&status).with_context(|| format!("{path} has no VmRSS"))
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(parse("VmPeak:\t 9 kB\nVmRSS:\t   1234 kB\n"), Some(1_263_616));
        assert!(resident(std::process::id()).unwrap() > 100_000);
    }
}
