//! From a started process to a serving engine: probes, the calls after the start, and the deadline.

use std::time::Duration;

use flexinfer_core::activation::{Failure, Progress, Reason, Substage};
use flexinfer_core::backends::{Backend, Launch};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::calls;
use super::output::Output;
use crate::ask::{self, Answer};
use crate::way::Way;

/// How long an engine may answer garbage before it counts as broken: some frameworks answer so for
/// the moment between opening their port and registering their paths.
const PATIENCE_WITH_GARBAGE: Duration = Duration::from_secs(2);
/// Output is looked at for progress no more often than this.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(100);

/// A load under way.
pub(super) struct Loading<'a, P> {
    pub(super) backend: Backend,
    pub(super) way: Way<'a>,
    pub(super) launch: &'a Launch,
    pub(super) output: &'a Output,
    /// Takes the progress.
    pub(super) progress: P,
}

impl<P: Fn(Progress)> Loading<'_, P> {
    /// Waits until the engine serves. Cancelled by dropping.
    pub(super) async fn finish(&self) -> Result<(), Failure> {
        let began = Instant::now();
        self.answer(began, began + self.launch.startup_limit).await?;
        for call in &self.launch.after_start {
            // Each call has the whole limit anew, and so has each step that it tells of.
            let deadline = Mutex::new(Instant::now() + self.launch.startup_limit);
            let progress = |step: Progress| {
                *deadline.lock() = Instant::now() + self.launch.startup_limit;
                (self.progress)(step);
            };
            tokio::select! {
                made = calls::make(self.backend, &self.way, call, progress) => made?,
                () = past(&deadline) => return Err(self.too_slow(&call.path)),
            }
        }
        Ok(())
    }

    /// Probes until the engine's own answer comes.
    async fn answer(&self, began: Instant, deadline: Instant) -> Result<(), Failure> {
        let mut garbage: Option<(Instant, String)> = None;
        let mut told = Told::default();
        loop {
            let elapsed = began.elapsed();
            let asked = ask::probe(&self.way, &self.launch.probe, patience(elapsed));
            match timeout_at(deadline, asked).await.unwrap_or(Answer::Silence) {
                Answer::Ready => return Ok(()),
                Answer::NotYet | Answer::Silence => garbage = None,
                Answer::Garbage(what) => {
                    let since = garbage.map_or_else(Instant::now, |(since, _)| since);
                    if since.elapsed() >= PATIENCE_WITH_GARBAGE {
                        return Err(Failure::new(Reason::UnhealthyAnswer, what));
                    }
                    garbage = Some((since, what));
                }
            }
            if Instant::now() >= deadline {
                return Err(match garbage {
                    Some((_, what)) => Failure::new(Reason::UnhealthyAnswer, what),
                    None => self.too_slow("its probe"),
                });
            }
            if let Some(step) = told.news(self.output) {
                (self.progress)(step);
            }
            sleep(between_probes(began.elapsed())).await;
        }
    }

    fn too_slow(&self, waited_for: &str) -> Failure {
        let name = self.backend.name();
        let limit = self.launch.startup_limit;
        let last = self.output.latest().map_or_else(
            || "it said nothing".to_owned(),
            |(_, line)| format!("its last line was `{line}`"),
        );
        let message = format!(
            "{name} has not answered {waited_for} within {limit:?}; {last}; if it only needs more \
             time, set spec.config.startupTimeout"
        );
        Failure::new(Reason::LoadTimeout, message)
    }
}

/// Resolves once `deadline` has passed, however often it is moved meanwhile.
async fn past(deadline: &Mutex<Instant>) {
    loop {
        let until = *deadline.lock();
        if Instant::now() >= until {
            return;
        }
        sleep_until(until).await;
    }
}

/// The time between two probes: 1 % of the load so far, so that a short load is noticed at once and a
/// long one is not kept from its work.
fn between_probes(elapsed: Duration) -> Duration {
    (elapsed / 100).clamp(Duration::from_millis(5), Duration::from_secs(1))
}

/// How long one probe may take: an engine that reads its weights may answer slowly.
fn patience(elapsed: Duration) -> Duration {
    (elapsed / 10).clamp(Duration::from_millis(250), Duration::from_secs(5))
}

/// What was told of an engine's output already.
#[derive(Default)]
struct Told {
    line: u64,
    at: Option<Instant>,
}

impl Told {
    /// The progress that a line not told yet stands for.
    fn news(&mut self, output: &Output) -> Option<Progress> {
        if self.at.is_some_and(|at| at.elapsed() < BETWEEN_PROGRESS) {
            return None;
        }
        let (number, message) = output.latest()?;
        if number == self.line {
            return None;
        }
        (self.line, self.at) = (number, Some(Instant::now()));
        let done = percent(&message).map(|percent| (percent, 100));
        Some(Progress { substage: Substage::LoadingWeights, done, message })
    }
}

/// The last percentage that `line` names.
fn percent(line: &str) -> Option<u64> {
    let before = line.get(..line.rfind('%')?)?.trim_end();
    let digits = before.rsplit(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
    let whole = digits.split('.').next()?;
    whole.parse().ok().filter(|percent| *percent <= 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_five_milliseconds_or_one_percent_apart() {
        let apart = |millis| between_probes(Duration::from_millis(millis)).as_millis();
        assert_eq!([apart(0), apart(400), apart(2_000), apart(30_000)], [5, 5, 20, 300]);
        assert_eq!(apart(1_000_000), 1_000);
    }

    #[test]
    fn percentages_are_found_in_lines() {
        assert_eq!(percent("loading 40 %"), Some(40));
        assert_eq!(percent("Loading shards:  67%|######7   | 2/3"), Some(67));
        assert_eq!(percent("12.7% of 4 GB"), Some(12));
        assert_eq!(percent("loading"), None);
        assert_eq!(percent("400% faster"), None);
    }
}
