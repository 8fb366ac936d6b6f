//! Fewer sequences at once for an engine whose cache is full, and as many as configured when that has passed.

use flexinfer_crds::model::{KvCacheStatus, PressureAction};

use super::Act;
use crate::planning::time::time;

/// Halves the sequences under pressure, again after each cooldown, and gives all of them back when the
/// pressure is over; `policy` is whether the Model wants that.
pub(super) fn settle(status: &mut KvCacheStatus, policy: bool, act: Act<'_>) {
    let configured = act.seen.sequences.and_then(|count| i32::try_from(count).ok());
    let changed = status.reconfigured == Some(true) && status.original_max_num_seqs != configured;
    if !policy || changed {
        as_configured(status);
    }
    let Some(configured) = configured.filter(|_| policy && act.rested) else { return };
    let current = status.reconfigured_max_num_seqs.unwrap_or(configured);
    if !act.pressed {
        as_configured(status);
    } else if current > 1 && act.seen.serving {
        status.reconfigured = Some(true);
        status.reconfigured_at = Some(time(act.seen.now));
        status.original_max_num_seqs = Some(configured);
        status.reconfigured_max_num_seqs = Some(current / 2);
        status.last_pressure_time = Some(time(act.seen.now));
        status.last_action = Some(PressureAction::Reconfigure);
    }
}

/// When it was reconfigured stays: the next time counts from there.
fn as_configured(status: &mut KvCacheStatus) {
    status.reconfigured = None;
    status.original_max_num_seqs = None;
    status.reconfigured_max_num_seqs = None;
}
