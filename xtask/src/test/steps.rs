//! The steps of a long run: each announced, timed, its tests counted, and all of it told again at the end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::counts::Counts;
use crate::prerequisites::{self, Need};
use crate::program;

/// How a step ended.
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Step {
    name: String,
    outcome: Outcome,
    took: Duration,
    counts: Counts,
}

/// The steps run so far.
pub(crate) struct Steps {
    done: Vec<Step>,
    only: Option<String>,
}

impl Steps {
    /// None yet; of those to come, only the ones whose name holds `only` are run, and told of.
    pub(crate) fn new(only: Option<String>) -> Self {
        Self { done: Vec::new(), only }
    }

    /// Whether a step is to be run.
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|words| name.contains(words))
    }

    /// Runs a step; what it counts goes into the sum.
    pub(crate) fn run(&mut self, name: &str, act: impl FnOnce(&mut Counts) -> Result<()>) {
        if !self.wants(name) {
            return;
        }
        println!("\n==> {name}");
        let begun = Instant::now();
        let mut counts = Counts::default();
        let outcome = match act(&mut counts) {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        if let Outcome::Failed(reason) = &outcome {
            println!("{name}: {reason}");
        }
        self.done.push(Step { name: name.to_owned(), outcome, took: begun.elapsed(), counts });
    }

    /// A step that drives outside programs: they are installed where that may be, else it is skipped.
    pub(crate) fn needing(
        &mut self,
        name: &str,
        needs: &[Need],
        act: impl FnOnce(&mut Counts) -> Result<()>,
    ) {
        if !self.wants(name) {
            return;
        }
        match prerequisites::ensure(needs) {
            Ok(()) => self.run(name, act),
            Err(reason) => self.skip(name, &format!("{reason:#}")),
        }
    }

    /// A step that is one program.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) {
        self.run(name, |counts| watched(command, counts));
    }

    /// Names what was not run, and why.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        if !self.wants(name) {
            return;
        }
        println!("\n==> {name}: skipped: {reason}");
        let outcome = Outcome::Skipped(reason.to_owned());
        let took = Duration::ZERO;
        self.done.push(Step { name: name.to_owned(), outcome, took, counts: Counts::default() });
    }

    /// Prints what happened and gives how many steps failed.
    pub(crate) fn summary(&self) -> usize {
        println!("\n{:<28} {:>8}  {:>6}  outcome", "step", "seconds", "tests");
        let mut sum = Counts::default();
        let mut failed = 0;
        for step in &self.done {
            let mut counts = step.counts.clone();
            let tests = counts.passed + counts.failed;
            let outcome = match &step.outcome {
                Outcome::Passed => "passed".to_owned(),
                Outcome::Failed(reason) => {
                    failed += 1;
                    // A step that broke without a test to show for it still counts as one.
                    counts.failed = counts.failed.max(1);
                    format!("FAILED: {}", first_line(reason))
                }
                Outcome::Skipped(reason) => {
                    counts.skipped += 1;
                    format!("skipped: {}", reason.lines().collect::<Vec<_>>().join(" "))
                }
            };
            sum.add(counts);
            println!("{:<28} {:>8.1}  {tests:>6}  {outcome}", step.name, step.took.as_secs_f64());
        }
        println!("\n{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
        for name in &sum.unsteady {
            println!("unsteady: {name} passed only when run again, alone");
        }
        failed
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Runs a command whose output is shown as it comes and read for counts.
pub(crate) fn watched(command: &mut Command, counts: &mut Counts) -> Result<()> {
    listened(command, |line| counts.read(line))
}

/// Runs a command whose output is shown as it comes, each line of it given to `hear`.
pub(super) fn listened(command: &mut Command, hear: impl FnMut(&str) + Send) -> Result<()> {
    let shown = program::spelled(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let hear = &Mutex::new(hear);
    std::thread::scope(|scope| {
        scope.spawn(move || stdout.map(|stream| relay(stream, hear)));
        scope.spawn(move || stderr.map(|stream| relay(stream, hear)));
    });
    let status = child.wait().with_context(|| format!("lost sight of `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

fn relay(stream: impl Read, hear: &Mutex<impl FnMut(&str)>) {
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        let mut hear = hear.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hear(&line);
    }
}
