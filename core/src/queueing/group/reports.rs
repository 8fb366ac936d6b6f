//! What a platform reports about engines.

use super::Group;
use crate::activation::{Failure, Report};
use crate::ids::InstanceId;
use crate::moment::Moment;
use crate::queueing::effects::{Effect, Effects, Notice};
use crate::queueing::line::{Bar, Engine, Line, Serving};
use crate::queueing::terms::{Policy, bar};
use crate::rejection::Rejection;

impl Group {
    /// An engine's life has moved on. A report about an instance that nobody knows any more is
    /// ignored. `jitter` in 0.0..1.0 spreads retries.
    pub fn report(&mut self, now: Moment, report: Report, jitter: f64) -> Effects {
        let mut effects = Effects::new();
        let policy = self.policy;
        match report {
            Report::Progress { instance, progress } => {
                if let Some(line) = self.line_of(instance)
                    && let Engine::Loading { progress: known, .. } = &mut line.engine
                {
                    *known = Some(progress);
                }
                return effects;
            }
            Report::Ready { instance, address } => {
                let Some(line) = self.line_of(instance) else { return effects };
                ready(line, now, address, &mut effects);
            }
            Report::Failed { instance, failure } => {
                let Some(line) = self.line_of(instance) else { return effects };
                failed(line, policy, now, failure, jitter, &mut effects);
            }
            Report::Gone { instance } => {
                let Some(line) = self.line_of(instance) else { return effects };
                line.engine = Engine::Absent;
                effects.push(Effect::Tell { model: line.terms.id.clone(), notice: Notice::Gone });
            }
        }
        self.settle(now, &mut effects);
        effects
    }

    fn line_of(&mut self, instance: InstanceId) -> Option<&mut Line> {
        self.lines.values_mut().find(|line| line.instance() == Some(instance))
    }
}

fn ready(line: &mut Line, now: Moment, address: std::net::SocketAddr, effects: &mut Effects) {
    let Engine::Loading { instance, generation, since, swapped_in, .. } = line.engine else {
        return;
    };
    let load_took = now.since(since);
    line.last_load = Some(load_took);
    line.bar = None;
    line.engine = Engine::Serving(Serving {
        instance,
        address,
        generation,
        since: now,
        load_took,
        swapped_in,
        in_flight: 0,
        draining: None,
        in_the_way: None,
        yielding: false,
    });
    let notice = Notice::Ready { took: load_took, waiting: line.waiting.len(), stages: Vec::new() };
    effects.push(Effect::Tell { model: line.terms.id.clone(), notice });
}

fn failed(
    line: &mut Line,
    policy: Policy,
    now: Moment,
    failure: Failure,
    jitter: f64,
    effects: &mut Effects,
) {
    let model = line.terms.id.clone();
    let served = match &line.engine {
        Engine::Serving(_) => true,
        // It was asked to end; how it did so does not matter.
        Engine::Stopping { .. } => {
            line.engine = Engine::Absent;
            effects.push(Effect::Tell { model, notice: Notice::Gone });
            return;
        }
        Engine::Absent | Engine::Loading { .. } => false,
    };
    line.engine = Engine::Absent;
    line.failures = line.failures.saturating_add(1);
    let retry = policy.backoff.filter(|backoff| {
        !line.waiting.is_empty()
            && failure.reason.transient()
            && line.failures <= backoff.max_retries
    });
    let wait = match retry {
        Some(backoff) => backoff.wait(line.failures - 1, jitter),
        None => bar(line.failures, served),
    };
    let retrying = retry.is_some() || wait.is_zero();
    if !retrying {
        effects.extend(line.waiting.dissolve().map(|ticket| Effect::Reject {
            ticket,
            rejection: Rejection::ActivationFailed {
                model: model.clone(),
                failure: failure.clone(),
                retry_in: Some(wait),
            },
        }));
    }
    let notice = Notice::Failed { failure: failure.clone(), retry_in: wait, retrying };
    effects.push(Effect::Tell { model, notice });
    line.bar = Some(Bar { until: now + wait, failure, retrying });
}
