//! Which tests failed and what they said, read from the output of Rust's test harness.

/// The most lines of a test's complaint that are told again at the end of a run.
const TOLD: usize = 12;

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its path, as the harness takes it with `--exact`.
    pub name: String,
    /// How it complained, cut.
    pub complaint: Vec<String>,
}

/// The failures of one command so far.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    found: Vec<Failure>,
    /// The one whose complaint is being read.
    reading: Option<usize>,
}

impl Failures {
    /// Takes in a line of output.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            let failure = Failure { name: name.to_owned(), complaint: Vec::new() };
            self.found.push(failure);
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.reading = self.found.iter().position(|failure| failure.name == name);
        } else if ["stack backtrace:", "failures:", "test result:"]
            .iter()
            .any(|end| line.starts_with(end))
        {
            self.reading = None;
        } else if let Some(failure) = self.reading.and_then(|index| self.found.get_mut(index)) {
            let room = failure.complaint.len() < TOLD && !line.trim().is_empty();
            failure.complaint.extend(room.then(|| line.chars().take(300).collect()));
        }
    }

    /// Those found, in the order in which they ended.
    pub(crate) fn found(self) -> Vec<Failure> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_found_with_what_it_said() {
        let mut failures = Failures::default();
        let printed = "\
running 2 tests
test pools::one ... ok
test pools::two ... FAILED

failures:

---- pools::two stdout ----

thread 'pools::two' (12) panicked at core/tests/suite/pools.rs:3:1:
it has answered
stack backtrace:
   0: rust_begin_unwind

failures:
    pools::two

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        printed.lines().for_each(|line| failures.read(line));
        let found = failures.found();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "pools::two");
        let said = [
            "thread 'pools::two' (12) panicked at core/tests/suite/pools.rs:3:1:",
            "it has answered",
        ];
        assert_eq!(found[0].complaint, said);
    }

    #[test]
    fn a_long_complaint_is_cut() {
        let mut failures = Failures::default();
        failures.read("test a ... FAILED");
        failures.read("---- a stdout ----");
        (0..100).for_each(|line| failures.read(&format!("line {line}")));
        assert_eq!(failures.found()[0].complaint.len(), TOLD);
    }
}
