//! Startup, readiness and liveness probes of one running container.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::asking::Surroundings;
use super::environment::Unsupported;

#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    started: bool,
    ready: bool,
    unhealthy: bool,
}

/// The probes of one run of a container; they end with it.
pub(super) struct Probing {
    verdict: watch::Receiver<Verdict>,
    _task: AbortOnDropHandle<()>,
}

impl Probing {
    pub(super) fn started(&self) -> bool {
        self.verdict.borrow().started
    }

    pub(super) fn ready(&self) -> bool {
        self.verdict.borrow().ready
    }

    /// Whether the container shall be ended: it did not start, or lives no more.
    pub(super) fn unhealthy(&self) -> bool {
        self.verdict.borrow().unhealthy
    }
}

/// Refuses what `begin` could not do.
pub(super) fn check(container: &Container) -> Result<(), Unsupported> {
    let probes = [
        ("startup", &container.startup_probe),
        ("readiness", &container.readiness_probe),
        ("liveness", &container.liveness_probe),
    ];
    for (name, probe) in probes {
        let known = probe.as_ref().is_none_or(|probe| {
            probe.http_get.is_some() || probe.tcp_socket.is_some() || probe.exec.is_some()
        });
        if !known {
            return Err(Unsupported::Probe(name));
        }
    }
    Ok(())
}

/// Begins to probe a container that was just started.
pub(super) fn begin(container: &Container, surroundings: Arc<Surroundings>) -> Probing {
    let (sender, verdict) = watch::channel(Verdict::default());
    let container = container.clone();
    let task = tokio::spawn(async move {
        let judge = Judge { container: &container, surroundings: &surroundings, verdict: &sender };
        judge.watch().await;
    });
    Probing { verdict, _task: AbortOnDropHandle::new(task) }
}

struct Judge<'a> {
    container: &'a Container,
    surroundings: &'a Surroundings,
    verdict: &'a watch::Sender<Verdict>,
}

impl Judge<'_> {
    /// Readiness and liveness are asked for once the container has started.
    async fn watch(&self) {
        if let Some(probe) = &self.container.startup_probe {
            let mut passed = false;
            self.repeat(probe, |verdict| {
                passed = verdict;
                false
            })
            .await;
            if !passed {
                self.verdict.send_modify(|verdict| verdict.unhealthy = true);
                return;
            }
        }
        let ready_at_once = self.container.readiness_probe.is_none();
        self.verdict.send_modify(|verdict| {
            verdict.started = true;
            verdict.ready = ready_at_once;
        });
        tokio::join!(self.ready(), self.live());
    }

    async fn ready(&self) {
        let Some(probe) = &self.container.readiness_probe else { return };
        self.repeat(probe, |ready| {
            self.verdict.send_modify(|verdict| verdict.ready = ready);
            true
        })
        .await;
    }

    async fn live(&self) {
        let Some(probe) = &self.container.liveness_probe else { return };
        self.repeat(probe, |alive| {
            self.verdict.send_modify(|verdict| verdict.unhealthy |= !alive);
            alive
        })
        .await;
    }

    /// Probes at the probe's pace and tells each verdict, until told that it was enough.
    async fn repeat(&self, probe: &Probe, mut tell: impl FnMut(bool) -> bool) {
        sleep(seconds(probe.initial_delay_seconds, 0)).await;
        let mut series = Series::new(probe);
        let mut pace = interval(seconds(probe.period_seconds, 10).max(Duration::from_secs(1)));
        loop {
            pace.tick().await;
            let asked = timeout(
                seconds(probe.timeout_seconds, 1),
                self.surroundings.ask(self.container, probe.into()),
            );
            let passed = matches!(asked.await, Ok(Ok(true)));
            if series.add(passed).is_some_and(|verdict| !tell(verdict)) {
                return;
            }
        }
    }
}

fn seconds(given: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(given.and_then(|given| u64::try_from(given).ok()).unwrap_or(default))
}

/// Answers in a row, and how many of a kind make a verdict.
struct Series {
    passes_needed: u32,
    failures_needed: u32,
    latest: Option<bool>,
    length: u32,
}

impl Series {
    fn new(probe: &Probe) -> Self {
        let count = |given: Option<i32>, default| {
            given.and_then(|given| u32::try_from(given).ok()).unwrap_or(default)
        };
        Self {
            passes_needed: count(probe.success_threshold, 1),
            failures_needed: count(probe.failure_threshold, 3),
            latest: None,
            length: 0,
        }
    }

    fn add(&mut self, passed: bool) -> Option<bool> {
        self.length = if self.latest == Some(passed) { self.length.saturating_add(1) } else { 1 };
        self.latest = Some(passed);
        let needed = if passed { self.passes_needed } else { self.failures_needed };
        (self.length >= needed).then_some(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_takes_as_many_equal_answers_as_the_probe_says() {
        let probe = Probe { failure_threshold: Some(2), ..Probe::default() };
        let mut series = Series::new(&probe);
        let verdicts = [false, true, false, false, false].map(|answer| series.add(answer));
        assert_eq!(verdicts, [None, Some(true), None, Some(false), Some(false)]);
    }
}
