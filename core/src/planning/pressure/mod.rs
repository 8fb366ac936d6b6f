//! What is done when an engine's key-value cache fills up: reported, run with fewer sequences for a while, or
//! put to sleep, as `spec.kvCache.pressurePolicy` says. The agent tells how full the fullest cache of a node
//! is, every now and then and after the fact; so nothing is done twice within `reconfigureCooldown`, and
//! pressure ends lower than it begins.
//!
//! All that has to be remembered is in `status.kvCache`, so that a new controller goes on where the one
//! before was.

mod sequences;
#[cfg(test)]
mod tests;

use std::time::Duration;

use flexinfer_crds::Quantity;
use flexinfer_crds::model::{KvCache, KvCacheStatus, PressureAction, PressurePolicy};

use crate::moment::Moment;
use crate::planning::time::{moment, time};

/// `kvCache.highWatermark` of a Model that names none.
const HIGH: f64 = 0.85;
/// `kvCache.lowWatermark` of a Model that names none.
const LOW: f64 = 0.60;
/// `kvCache.reconfigureCooldown` of a Model that names none.
const COOLDOWN: Duration = Duration::from_mins(5);
/// By how much the share in use must have moved to be written again: a status that follows every
/// measurement would never rest.
const STEP: f64 = 0.05;

/// What is seen of a model's key-value cache.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What the Model wishes; `None` where it says nothing, and nothing is done.
    pub wishes: Option<&'a KvCache>,
    /// The share in use on its node, 0 to 1, where that is known.
    pub usage: Option<f64>,
    /// Whether an engine serves: of any other the measurement is an older one's.
    pub serving: bool,
    /// Whether an engine is asked for.
    pub up: bool,
    /// Sequences that the engine is configured to work on at once; `None` where that cannot be set.
    pub sequences: Option<u32>,
    /// What the status says.
    pub status: Option<&'a KvCacheStatus>,
    /// Now.
    pub now: Moment,
}

/// What comes of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pressure {
    /// What the status shall say.
    pub status: Option<KvCacheStatus>,
    /// Sequences that the engine shall have instead of those configured.
    pub sequences: Option<u32>,
    /// Whether the model shall go to sleep, whoever asks for it.
    pub evict: bool,
    /// When to look again although nothing is reported.
    pub look_again: Option<Moment>,
}

/// What to do about the pressure that is `seen`.
pub fn pressure(seen: Seen<'_>) -> Pressure {
    let Some(wishes) = seen.wishes else { return Pressure::default() };
    let policy = wishes.pressure_policy.unwrap_or(PressurePolicy::Observe);
    let old = seen.status.cloned().unwrap_or_default();
    let pressed = pressed(wishes, &old, seen);
    let cooldown = wishes.reconfigure_cooldown.map_or(COOLDOWN, Into::into);
    let acted = [&old.reconfigured_at, &old.evicted_at].into_iter().flatten().map(moment).max();
    let rested_at = acted.map(|at| at + cooldown);
    let mut status = KvCacheStatus {
        utilization: utilization(&old, seen),
        pressure: (pressed || old.pressure.is_some()).then_some(pressed),
        ..old.clone()
    };
    if pressed && old.pressure != Some(true) {
        status.last_pressure_time = Some(time(seen.now));
        status.last_action = Some(PressureAction::Observed);
    }
    let rested = rested_at.is_none_or(|at| seen.now >= at);
    let act = Act { pressed, rested, seen };
    sequences::settle(&mut status, policy == PressurePolicy::Reconfigure, act);
    let evict = evicted(&mut status, policy == PressurePolicy::Evict, act);
    let reconfigured =
        status.reconfigured_max_num_seqs.filter(|_| status.reconfigured == Some(true));
    Pressure {
        sequences: reconfigured.and_then(|count| u32::try_from(count).ok()),
        evict,
        look_again: rested_at
            .filter(|at| seen.now < *at && (pressed || status.reconfigured == Some(true))),
        status: Some(status).filter(|status| *status != KvCacheStatus::default()),
    }
}

/// Whether something may be done now.
#[derive(Clone, Copy)]
struct Act<'a> {
    pressed: bool,
    rested: bool,
    seen: Seen<'a>,
}

/// Whether there is pressure: it begins at one mark and ends at a lower one.
fn pressed(wishes: &KvCache, old: &KvCacheStatus, seen: Seen<'_>) -> bool {
    let before = old.pressure == Some(true);
    let high = share(wishes.high_watermark.as_ref(), HIGH);
    let low = share(wishes.low_watermark.as_ref(), LOW).min(high);
    match seen.usage.filter(|_| seen.serving) {
        Some(usage) if usage >= high => true,
        Some(usage) if usage <= low => false,
        Some(_) => before,
        // One that is gone has left its cache behind.
        None => before && seen.up,
    }
}

fn share(mark: Option<&Quantity>, default: f64) -> f64 {
    mark.and_then(|mark| mark.number().ok()).unwrap_or(default)
}

/// The share in use as the status says it; as it stands, where it has hardly moved.
fn utilization(old: &KvCacheStatus, seen: Seen<'_>) -> Option<String> {
    let usage = seen.usage.filter(|_| seen.serving)?;
    let written = old.utilization.as_ref();
    let near = |text: &&String| text.parse::<f64>().is_ok_and(|told| (told - usage).abs() < STEP);
    written.filter(near).cloned().or_else(|| Some(format!("{usage:.4}")))
}

/// Puts the model to sleep; `evicted` is false from the decision until its engine is gone.
fn evicted(status: &mut KvCacheStatus, policy: bool, act: Act<'_>) -> bool {
    let requested = status.evicted == Some(false);
    if !policy {
        status.evicted = status.evicted.filter(|_| !requested);
        return false;
    }
    if requested && !act.seen.up {
        status.evicted = Some(true);
        status.evicted_at = Some(time(act.seen.now));
        return false;
    }
    if !requested && act.pressed && act.rested && act.seen.serving {
        status.evicted = Some(false);
        status.last_pressure_time = Some(time(act.seen.now));
        status.last_action = Some(PressureAction::EvictRequested);
        return true;
    }
    if act.seen.serving && !requested {
        status.evicted = None;
    }
    requested
}
