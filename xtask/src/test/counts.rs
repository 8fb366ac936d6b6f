//! How many tests a runner ran, read from its closing lines: cargo test, Python's unittest, node --test.

/// Tests that passed, failed, or were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Those of the passed that failed at first.
    pub unsteady: Vec<String>,
}

impl Counts {
    /// Adds what a line of a runner's output says, if it is one of its closing lines.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result:") {
            self.passed += before(result, "passed");
            self.failed += before(result, "failed");
            self.skipped += before(result, "ignored");
        } else if let Some(count) = line.strip_prefix("# pass ").or(line.strip_prefix("ℹ pass "))
        {
            self.passed += count.parse().unwrap_or(0);
        } else if let Some(count) = line.strip_prefix("# fail ").or(line.strip_prefix("ℹ fail "))
        {
            self.failed += count.parse().unwrap_or(0);
        } else if let Some(count) =
            line.strip_prefix("# skipped ").or(line.strip_prefix("ℹ skipped "))
        {
            self.skipped += count.parse().unwrap_or(0);
        } else if let Some(ran) = line.strip_prefix("Ran ") {
            self.passed += ran.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
        } else if line.starts_with("FAILED (") || line.starts_with("OK (") {
            // unittest counts these among those it ran.
            let failed = after(line, "failures=") + after(line, "errors=");
            let skipped = after(line, "skipped=");
            self.passed = self.passed.saturating_sub(failed + skipped);
            self.failed += failed;
            self.skipped += skipped;
        }
    }

    pub(crate) fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.unsteady.extend(other.unsteady);
    }

    /// Takes over how those that failed fared when they were run again: so many `passed`, which are these.
    pub(crate) fn once_more(&mut self, passed: usize, unsteady: impl IntoIterator<Item = String>) {
        let passed = passed.min(self.failed);
        self.failed -= passed;
        self.passed += passed;
        self.unsteady.extend(unsteady.into_iter().take(passed));
    }
}

fn before(text: &str, word: &str) -> usize {
    let words: Vec<&str> = text.split([' ', ';']).filter(|part| !part.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair.last() == Some(&word));
    pair.and_then(|pair| pair.first()?.parse().ok()).unwrap_or(0)
}

fn after(text: &str, label: &str) -> usize {
    let rest = text.split_once(label).map_or("", |(_, rest)| rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Counts {
        let mut counts = Counts::default();
        for line in lines {
            counts.read(line);
        }
        counts
    }

    fn counts_of(passed: usize, failed: usize, skipped: usize) -> Counts {
        Counts { passed, failed, skipped, ..Counts::default() }
    }

    #[test]
    fn what_passes_once_more_is_named() {
        let mut counts = counts_of(10, 2, 0);
        counts.once_more(1, ["a".to_owned()]);
        assert_eq!(counts, Counts { unsteady: vec!["a".to_owned()], ..counts_of(11, 1, 0) });
    }

    #[test]
    fn closing_lines_of_each_runner_are_counted() {
        let cargo =
            "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
        assert_eq!(read(&[cargo]), counts_of(12, 1, 2));
        let node = ["# tests 5", "# pass 4", "# fail 1", "# skipped 0"];
        assert_eq!(read(&node), counts_of(4, 1, 0));
        let unittest = ["Ran 9 tests in 1.2s", "", "FAILED (failures=1, errors=1, skipped=2)"];
        assert_eq!(read(&unittest), counts_of(5, 2, 2));
        assert_eq!(read(&["Ran 3 tests in 0.1s", "OK"]).passed, 3);
    }
}
