//! Tests under Rust's harness, with a second look at those that failed.
//!
//! Hundreds of tests with real processes share a small machine, and the one that a pause of it caught says little.
//! What fails is run again with nothing beside it: if it fails again it is a failure; if not, the run goes on and
//! names it at its end, since somebody has to make it steady.

use std::process::Command;

use anyhow::Result;

use super::counts::Counts;
use super::failures::{Failure, Failures};
use super::steps::listened;

/// How cargo says that a program of tests was ended, and with it whatever it had still to run.
const ENDED: &str = "(signal:";

/// With more failures than these something is broken, and not just late.
const MOST: usize = 12;

/// Runs what `command` gives for no names, and then for those that failed: each name is a whole path, and the
/// harness wants `--exact` with them.
pub(crate) fn tests(
    counts: &mut Counts,
    mut command: impl FnMut(&[String]) -> Result<Command>,
) -> Result<()> {
    let first = Ran::to_its_end(command(&[])?);
    let all_named = !first.ended && first.failed.len() == first.counts.failed;
    counts.add(first.counts);
    let Err(error) = first.outcome else { return Ok(()) };
    if !all_named || first.failed.is_empty() || first.failed.len() > MOST {
        tell("failed", &first.failed);
        return Err(error);
    }
    tell("failed, and run once more with nothing beside it", &first.failed);
    let names: Vec<String> = first.failed.into_iter().map(|failure| failure.name).collect();
    let again = Ran::to_its_end(command(&names)?);
    // One that a broken harness did not come to has not passed.
    let told = again.outcome.is_ok() || again.counts.failed > 0;
    let passed = if told { again.counts.passed } else { 0 };
    let unsteady = |name: &String| again.failed.iter().all(|failure| failure.name != *name);
    counts.once_more(passed, names.into_iter().filter(unsteady));
    tell("failed twice", &again.failed);
    again.outcome?;
    anyhow::ensure!(counts.failed == 0, "not all that failed was run again");
    Ok(())
}

/// What a command showed.
struct Ran {
    outcome: Result<()>,
    counts: Counts,
    failed: Vec<Failure>,
    /// A program of tests was ended.
    ended: bool,
}

impl Ran {
    fn to_its_end(mut command: Command) -> Self {
        let (mut counts, mut failures, mut ended) = (Counts::default(), Failures::default(), false);
        let outcome = listened(command.env("RUST_BACKTRACE", "0"), |line| {
            counts.read(line);
            failures.read(line);
            ended |= line.contains(ENDED);
        });
        Self { outcome, counts, failed: failures.found(), ended }
    }
}

fn tell(what: &str, failed: &[Failure]) {
    for failure in failed {
        println!("{}: {what}", failure.name);
        failure.complaint.iter().for_each(|line| println!("    {line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A harness with one test that passes and one that fails, the second time as `again` says.
    fn run(again: &str) -> (Result<()>, Counts, Vec<Vec<String>>) {
        let (mut counts, mut asked) = (Counts::default(), Vec::new());
        let first = "echo 'test a ... ok'; echo 'test b ... FAILED'; \
            echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101";
        let result = tests(&mut counts, |names| {
            asked.push(names.to_vec());
            let mut shell = Command::new("sh");
            shell.args(["-c", if names.is_empty() { first } else { again }]);
            Ok(shell)
        });
        (result, counts, asked)
    }

    #[test]
    fn what_failed_is_run_again_and_named_where_it_passes() {
        let (result, counts, asked) =
            run("echo 'test b ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'");
        result.unwrap();
        assert_eq!((counts.passed, counts.failed), (2, 0));
        assert_eq!(counts.unsteady, ["b"]);
        assert_eq!(asked, [vec![], vec!["b".to_owned()]]);
    }

    #[test]
    fn what_fails_twice_has_failed() {
        let (result, counts, _) = run("echo 'test b ... FAILED'; \
            echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 101");
        result.unwrap_err();
        assert_eq!((counts.passed, counts.failed), (1, 1));
        assert!(counts.unsteady.is_empty());
    }

    #[test]
    fn a_program_that_was_ended_is_a_failure_whatever_else_passes_once_more() {
        let first = "echo 'test b ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; \
            echo '  process did not exit successfully: `a` (signal: 6, SIGABRT)' >&2; exit 101";
        let (mut counts, mut runs) = (Counts::default(), 0);
        let result = tests(&mut counts, |_| {
            runs += 1;
            let mut shell = Command::new("sh");
            shell.args(["-c", if runs == 1 { first } else { "exit 0" }]);
            Ok(shell)
        });
        result.unwrap_err();
        assert_eq!((runs, counts.failed), (1, 1));
    }

    #[test]
    fn one_that_was_not_run_again_has_failed() {
        let (result, counts, _) = run("exit 0");
        result.unwrap_err();
        assert_eq!((counts.passed, counts.failed), (1, 1));
        assert!(counts.unsteady.is_empty());
    }

    #[test]
    fn a_second_run_that_breaks_shows_nothing() {
        let (result, counts, _) = run("exit 1");
        result.unwrap_err();
        assert_eq!((counts.passed, counts.failed), (1, 1));
        assert!(counts.unsteady.is_empty());
    }
}
