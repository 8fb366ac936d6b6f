//! Whether the system ends processes because memory has run out.

use std::fs;

/// How many processes the system has killed for their memory since it started; `None` where it does
/// not tell.
pub(super) fn kills() -> Option<u64> {
    kills_in(&fs::read_to_string("/proc/vmstat").ok()?)
}

/// Reads the line `oom_kill 3`.
fn kills_in(statistics: &str) -> Option<u64> {
    statistics.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_found_among_the_systems_statistics() {
        let statistics = "pgfault 12\noom_kill_x 9\noom_kill 3\nnuma_hit 7\n";
        assert_eq!(kills_in(statistics), Some(3));
        assert_eq!(kills_in("pgfault 12\n"), None);
    }
}
