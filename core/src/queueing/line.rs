//! One member of a group: the requests that wait for it, and its engine.

use std::net::SocketAddr;
use std::time::Duration;

use super::swap_wait::SwapWait;
use super::terms::Terms;
use super::waiting::{Asked, Waiting};
use crate::activation::{Failure, Progress};
use crate::ids::InstanceId;
use crate::moment::Moment;
use crate::scaling::{Activity, Warmth};
use crate::sharing::{Member, Residency};

/// A member's engine, as far as it was reported.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    /// There is none.
    Absent,
    /// Ordered, not ready.
    Loading {
        instance: InstanceId,
        generation: u64,
        since: Moment,
        swapped_in: Option<Moment>,
        progress: Option<Progress>,
    },
    /// Ready for requests.
    Serving(Serving),
    /// Asked to end; its resources are taken until it is reported gone.
    Stopping { instance: InstanceId },
}

/// An engine that serves.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    pub(super) instance: InstanceId,
    pub(super) address: SocketAddr,
    pub(super) generation: u64,
    pub(super) since: Moment,
    pub(super) load_took: Duration,
    pub(super) swapped_in: Option<Moment>,
    /// Requests on it now.
    pub(super) in_flight: u32,
    /// Since when it takes nothing new because it has to leave.
    pub(super) draining: Option<Moment>,
    /// From when its drain limit counts: since another member has been kept waiting by it.
    pub(super) in_the_way: Option<Moment>,
    /// It takes nothing new while a member of equal priority waits.
    pub(super) yielding: bool,
}

/// Why a member is not tried before some moment.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) until: Moment,
    pub(super) failure: Failure,
    /// Waiting requests are kept for a retry; otherwise they were told.
    pub(super) retrying: bool,
}

/// One member.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) terms: Terms,
    /// Its Model is gone; the line stays until its engine is.
    pub(super) removed: bool,
    pub(super) engine: Engine,
    pub(super) waiting: Waiting,
    pub(super) last_active: Option<Moment>,
    pub(super) bar: Option<Bar>,
    pub(super) failures: u32,
    /// How long the last load took.
    pub(super) last_load: Option<Duration>,
    /// What the last swap for it kept its requests waiting.
    pub(super) last_swap: Option<SwapWait>,
    /// A swap for this member was told to people.
    pub(super) swap_told: bool,
    /// A request that may not wait has asked for it.
    pub(super) asked: Option<Asked>,
    /// The estimate of the engine that is there, which an edit does not change.
    pub(super) engine_vram: Option<u64>,
}

impl Line {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            terms,
            removed: false,
            engine: Engine::Absent,
            waiting: Waiting::default(),
            last_active: None,
            bar: None,
            failures: 0,
            last_load: None,
            last_swap: None,
            swap_told: false,
            asked: None,
            engine_vram: None,
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        match &self.engine {
            Engine::Serving(serving) => serving.in_flight,
            _ => 0,
        }
    }

    pub(super) fn instance(&self) -> Option<InstanceId> {
        match &self.engine {
            Engine::Absent => None,
            Engine::Loading { instance, .. } | Engine::Stopping { instance } => Some(*instance),
            Engine::Serving(serving) => Some(serving.instance),
        }
    }

    pub(super) fn activity(&self) -> Activity {
        let asked = usize::from(self.asked.is_some());
        Activity {
            in_flight: self.in_flight(),
            waiting: u32::try_from(self.waiting.len() + asked).unwrap_or(u32::MAX),
            waiting_since: self.waiting.since().or(self.asked.map(|asked| asked.since)),
            last_active: self.last_active,
            watched_since: None,
        }
    }

    /// Whether the engine runs an older spec than the Model has now.
    pub(super) fn outdated(&self) -> bool {
        self.removed
            || match &self.engine {
                Engine::Serving(serving) => serving.generation != self.terms.generation,
                Engine::Loading { generation, .. } => *generation != self.terms.generation,
                Engine::Absent | Engine::Stopping { .. } => false,
            }
    }

    /// A serving engine that takes new requests, if there is one.
    pub(super) fn open(&mut self) -> Option<&mut Serving> {
        if self.outdated() {
            return None;
        }
        match &mut self.engine {
            Engine::Serving(serving) if serving.draining.is_none() && !serving.yielding => {
                Some(serving)
            }
            _ => None,
        }
    }

    /// What the election sees. A removed or outdated member has no claim of its own; one whose
    /// engine is ending counts as absent and may be elected again.
    pub(super) fn member(&self) -> Member {
        let residency = match &self.engine {
            Engine::Absent | Engine::Stopping { .. } => Residency::Absent,
            _ if self.outdated() => Residency::Absent,
            Engine::Loading { .. } => Residency::Loading,
            Engine::Serving(serving) => Residency::Serving {
                since: serving.since,
                load_took: serving.load_took,
                swapped_in: serving.swapped_in,
            },
        };
        Member {
            id: self.terms.id.clone(),
            priority: self.terms.priority,
            force_promotion: self.terms.force_promotion,
            warmth: self.warmth(),
            idle_timeout: self.terms.idle_timeout,
            swap_cooldown: self.terms.swap_cooldown,
            vram_mib: self.terms.vram_mib,
            barred_until: self.bar.as_ref().map(|bar| bar.until),
            residency,
            activity: self.activity(),
        }
    }

    /// Why it stays up now: a preload pins it until it was used once.
    pub(super) fn warmth(&self) -> Warmth {
        let preloading = self.terms.preload && self.last_active.is_none();
        if preloading { self.terms.warmth.max(Warmth::Pinned) } else { self.terms.warmth }
    }
}
