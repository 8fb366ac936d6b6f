//! When a model may sleep and when it must not.
//!
//! [`Activity`] is the one thing that both platforms decide from: local mode fills it from its own
//! queues, the controller from what the gateways report.

use std::time::Duration;

use crate::moment::Moment;

/// What a model has to do. Busy is something in flight or waiting; idle is neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Requests on an engine, until their last byte.
    pub in_flight: u32,
    /// Requests that wait for a slot or for the model to be ready.
    pub waiting: u32,
    /// Since when the oldest waiting request waits.
    pub waiting_since: Option<Moment>,
    /// When the last request ended: the last byte counts, not the first.
    pub last_active: Option<Moment>,
    /// Since when it has been watched, where what was before is not known: unknown is not idle, and not used either.
    pub watched_since: Option<Moment>,
}

impl Activity {
    /// Nothing in flight and nothing waiting.
    pub const fn idle(&self) -> bool {
        self.in_flight == 0 && self.waiting == 0
    }
}

/// Why a model stays up without a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warmth {
    /// It does not: it sleeps when idle.
    #[default]
    None,
    /// `serverless.minReplicas` of one or more, serverless off, or a preload not yet used.
    Pinned,
    /// `gpu.warmPolicy: primary`: the member that holds the group when nobody else has work.
    Primary,
}

/// What decides when an engine goes to sleep.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// How long nothing may be in flight.
    pub idle_timeout: Duration,
    /// Why it would not sleep at all.
    pub warmth: Warmth,
}

/// The moment at which a serving model goes to sleep if nothing happens until then.
/// `None`: never by itself, because it is busy or kept warm.
///
/// An engine that was never asked counts from when it became ready, so that a load which nobody
/// waited for is still given its time.
pub fn sleeps_at(rest: Rest, activity: &Activity, ready_since: Moment) -> Option<Moment> {
    if rest.warmth != Warmth::None || !activity.idle() {
        return None;
    }
    Some(quiet_since(activity, ready_since) + rest.idle_timeout)
}

/// Since when a serving model has had nothing to do, as far as it is known: counted from its last byte, its
/// readiness, or from when it has been watched.
pub fn quiet_since(activity: &Activity, ready_since: Moment) -> Moment {
    let known = activity.last_active.max(activity.watched_since);
    known.map_or(ready_since, |last| last.max(ready_since))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(seconds)
    }

    const REST: Rest = Rest { idle_timeout: Duration::from_secs(60), warmth: Warmth::None };

    #[test]
    fn idle_time_counts_from_the_last_byte() {
        let activity = Activity { last_active: Some(at(100)), ..Activity::default() };
        assert_eq!(sleeps_at(REST, &activity, at(10)), Some(at(160)));
    }

    #[test]
    fn a_model_that_nobody_asked_counts_from_its_readiness() {
        assert_eq!(sleeps_at(REST, &Activity::default(), at(10)), Some(at(70)));
        let before = Activity { last_active: Some(at(5)), ..Activity::default() };
        assert_eq!(sleeps_at(REST, &before, at(10)), Some(at(70)));
        let watched = Activity { watched_since: Some(at(40)), ..before };
        assert_eq!(sleeps_at(REST, &watched, at(10)), Some(at(100)));
    }

    #[test]
    fn queue_06_a_busy_model_never_sleeps() {
        let streaming = Activity { in_flight: 1, last_active: Some(at(0)), ..Activity::default() };
        assert_eq!(sleeps_at(REST, &streaming, at(0)), None);
        let waited_for = Activity { waiting: 1, ..Activity::default() };
        assert_eq!(sleeps_at(REST, &waited_for, at(0)), None);
    }

    #[test]
    fn a_pinned_model_never_sleeps() {
        for warmth in [Warmth::Pinned, Warmth::Primary] {
            assert_eq!(sleeps_at(Rest { warmth, ..REST }, &Activity::default(), at(0)), None);
        }
    }
}
