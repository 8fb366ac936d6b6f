//! What a queue is told about its models and about how patient it is.

use std::time::Duration;

use crate::effective::Effective;
use crate::ids::ModelId;
use crate::routing::{Preferences, Strategy};
use crate::scaling::Warmth;

/// What the queue needs to know of one Model.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Which model.
    pub id: ModelId,
    /// The generation of its spec; an engine of an older one takes nothing new.
    pub generation: u64,
    /// `gpu.priority`.
    pub priority: i32,
    /// `gpu.forcePromotion`.
    pub force_promotion: bool,
    /// Whether it stays up without requests.
    pub warmth: Warmth,
    /// `config.preloadOnDeploy`: kept up until it was used once.
    pub preload: bool,
    /// When an idle engine goes to sleep.
    pub idle_timeout: Duration,
    /// `gpu.swapCooldown`.
    pub swap_cooldown: Duration,
    /// `gpu.vramEstimateMB`.
    pub vram_mib: Option<u64>,
    /// How long a displaced engine may finish what it serves.
    pub drain_limit: Duration,
    /// `serverless.coldStartTimeout`.
    pub cold_start_timeout: Option<Duration>,
    /// Requests at once on its engine; `None` is no limit.
    pub slots: Option<u32>,
    /// How many may wait for it; `None` is the policy's number.
    pub max_queue: Option<u32>,
    /// The annotation `flexinfer.ai/routing`.
    pub routing: Option<Strategy>,
}

impl From<&Effective> for Terms {
    fn from(model: &Effective) -> Self {
        let warmth = if model.warm_primary {
            Warmth::Primary
        } else if model.min_replicas > 0 {
            Warmth::Pinned
        } else {
            Warmth::None
        };
        Self {
            id: model.id.clone(),
            generation: model.generation,
            priority: model.priority,
            force_promotion: model.force_promotion,
            warmth,
            preload: model.preload,
            idle_timeout: model.idle_timeout,
            swap_cooldown: model.swap_cooldown,
            vram_mib: model.vram_estimate_mib,
            drain_limit: model.drain_limit,
            cold_start_timeout: model.cold_start_timeout,
            slots: model.slots,
            max_queue: model.max_queue,
            routing: model.routing,
        }
    }
}

/// How patient a queue is: the process's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// `PROXY_MAX_QUEUE_SIZE`: how many may wait for one model.
    pub max_queue: u32,
    /// `PROXY_QUEUE_TIMEOUT`: how long a request waits for a slot.
    pub queue_timeout: Duration,
    /// `PROXY_COLD_START_TIMEOUT`: how long one waits for a model that must be woken.
    pub cold_start_timeout: Duration,
    /// `PROXY_BACKOFF_*`: whether and how a failed activation is tried again while requests wait.
    pub backoff: Option<Backoff>,
    /// How requests are spread over endpoints.
    pub routing: Preferences,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_queue: 100,
            queue_timeout: Duration::from_secs(60),
            cold_start_timeout: Duration::from_secs(60),
            backoff: None,
            routing: Preferences::default(),
        }
    }
}

impl Policy {
    /// How long a request waits for a model that must be woken, the retries included: waiters
    /// outlast them.
    pub fn cold_wait(&self, terms: &Terms) -> Duration {
        let once = terms.cold_start_timeout.unwrap_or(self.cold_start_timeout);
        let once = once.max(self.queue_timeout);
        self.backoff.map_or(once, |backoff| {
            once.saturating_mul(backoff.max_retries.saturating_add(1))
                .saturating_add(backoff.all_waits())
        })
    }
}

/// Exponential backoff between attempts at the same activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Attempts after the first.
    pub max_retries: u32,
    /// The wait before the first retry.
    pub initial_wait: Duration,
    /// No wait is longer, jitter included.
    pub max_wait: Duration,
}

impl Backoff {
    /// The wait before retry number `retry` (from 0), spread by `jitter` in 0.0..1.0 over half to
    /// all of its length.
    pub fn wait(&self, retry: u32, jitter: f64) -> Duration {
        let factor = 2_u32.checked_pow(retry).unwrap_or(u32::MAX);
        let full = self.initial_wait.saturating_mul(factor).min(self.max_wait);
        full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }

    fn all_waits(&self) -> Duration {
        (0..self.max_retries)
            .map(|retry| self.wait(retry, 1.0))
            .fold(Duration::ZERO, Duration::saturating_add)
    }
}

/// How long a model that failed `failures` times in a row is left alone: one second, doubling, at
/// most a minute. The first crash of an engine that had been serving is forgiven.
pub(super) fn bar(failures: u32, had_served: bool) -> Duration {
    let steps = if had_served { failures.saturating_sub(1) } else { failures };
    if steps == 0 {
        return Duration::ZERO;
    }
    let factor = 2_u32.checked_pow(steps - 1).unwrap_or(u32::MAX);
    Duration::from_secs(1).saturating_mul(factor).min(Duration::from_secs(60))
}

#[cfg(test)]
pub(super) mod tests {
    use flexinfer_crds::Model;
    use flexinfer_crds::model::ModelSpec;

    use super::*;
    use crate::effective::Defaults;

    /// Of a model that says nothing but that it takes two requests at once.
    pub(in crate::queueing) fn terms(name: &str) -> Terms {
        let spec = ModelSpec { backend: "simulator".to_owned(), ..ModelSpec::default() };
        let model = Effective::of(&Model::new(name, spec), 1, &Defaults::default()).unwrap();
        Terms { slots: Some(2), ..Terms::from(&model) }
    }

    const BACKOFF: Backoff = Backoff {
        max_retries: 3,
        initial_wait: Duration::from_secs(5),
        max_wait: Duration::from_secs(15),
    };

    #[test]
    fn waits_double_up_to_their_limit_and_jitter_only_shortens_them() {
        let waits: Vec<_> = (0..4).map(|retry| BACKOFF.wait(retry, 1.0).as_secs()).collect();
        assert_eq!(waits, [5, 10, 15, 15]);
        assert_eq!(BACKOFF.wait(0, 0.0), Duration::from_millis(2500));
        assert_eq!(BACKOFF.wait(u32::MAX, 1.0), Duration::from_secs(15));
    }

    #[test]
    fn a_failing_model_is_left_alone_for_longer_each_time() {
        let bars: Vec<_> = (1..9).map(|failures| bar(failures, false).as_secs()).collect();
        assert_eq!(bars, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(bar(1, true), Duration::ZERO);
        assert_eq!(bar(2, true), Duration::from_secs(1));
    }
}
