//! What can be seen of a group from outside: for status pages and metrics.

use std::net::SocketAddr;
use std::time::Duration;

use super::SwapWait;
use super::line::{Engine, Line};
use crate::activation::{Failure, Progress};
use crate::ids::ModelId;
use crate::moment::Moment;

/// A model's phase, with the names of `status.phase`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr, strum::EnumIter,
)]
pub enum Phase {
    /// Asleep; the next request wakes it.
    Idle,
    /// Requests wait, and another model has to leave first.
    Pending,
    /// Its engine is on its way.
    Loading,
    /// It serves.
    Ready,
    /// It serves, takes nothing new and leaves.
    Draining,
    /// Its engine is ending.
    Stopping,
    /// It failed and is left alone for a while.
    Failed,
}

/// One member of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberView {
    /// Which model.
    pub id: ModelId,
    /// Its phase.
    pub phase: Phase,
    /// Where it serves.
    pub address: Option<SocketAddr>,
    /// Requests on its engine.
    pub in_flight: u32,
    /// Requests in its queue.
    pub waiting: usize,
    /// How far its load is.
    pub progress: Option<Progress>,
    /// Why it failed last, while it is left alone.
    pub failure: Option<Failure>,
    /// How long its last load took.
    pub last_load: Option<Duration>,
    /// What kept its requests waiting when another model last had to leave for it.
    pub last_swap: Option<SwapWait>,
    /// When its last request ended.
    pub last_active: Option<Moment>,
}

impl Line {
    pub(super) fn view(&self, now: Moment) -> MemberView {
        let barred = self.bar.as_ref().filter(|bar| now < bar.until);
        let phase = match &self.engine {
            Engine::Absent if barred.is_some() => Phase::Failed,
            Engine::Absent if self.waiting.is_empty() => Phase::Idle,
            Engine::Absent => Phase::Pending,
            Engine::Loading { .. } => Phase::Loading,
            Engine::Serving(serving) if serving.draining.is_some() || self.outdated() => {
                Phase::Draining
            }
            Engine::Serving(_) => Phase::Ready,
            Engine::Stopping { .. } => Phase::Stopping,
        };
        MemberView {
            id: self.terms.id.clone(),
            phase,
            address: match &self.engine {
                Engine::Serving(serving) => Some(serving.address),
                _ => None,
            },
            in_flight: self.in_flight(),
            waiting: self.waiting.len(),
            progress: match &self.engine {
                Engine::Loading { progress, .. } => progress.clone(),
                _ => None,
            },
            failure: barred.map(|bar| bar.failure.clone()),
            last_load: self.last_load,
            last_swap: self.last_swap,
            last_active: self.last_active,
        }
    }
}
