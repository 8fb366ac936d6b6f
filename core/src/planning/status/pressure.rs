//! What is told about the pressure on a model's key-value cache.

use flexinfer_crds::model::{KvCacheStatus, ModelStatus, PressureAction};

use super::Announcement;

/// The event of what changed from `old` to `new`.
pub(super) fn told(old: Option<&ModelStatus>, new: &ModelStatus) -> Option<Announcement> {
    let nothing = KvCacheStatus::default();
    let before = old.and_then(|status| status.kv_cache.as_ref()).unwrap_or(&nothing);
    let now = new.kv_cache.as_ref().unwrap_or(&nothing);
    let pressed = |status: &KvCacheStatus| status.pressure == Some(true);
    let event = |warning, reason: &str, note| Some(Announcement::new(warning, reason, note));
    // What was done is told each time; what is only seen, when it begins.
    if pressed(now) && now.last_pressure_time != before.last_pressure_time {
        return event(true, "KVCachePressure", pressure(now));
    }
    if now.evicted == Some(true) && before.evicted != Some(true) {
        let note = "asleep; its key-value cache was full".to_owned();
        return event(false, "KVCacheEvicted", note);
    }
    if before.reconfigured == Some(true) && now.reconfigured != Some(true) {
        let note = "its engine has as many sequences as configured again".to_owned();
        return event(false, "KVCacheRestored", note);
    }
    if pressed(before) && !pressed(now) {
        return event(false, "KVCacheRelieved", "its key-value cache has room again".to_owned());
    }
    None
}

fn pressure(status: &KvCacheStatus) -> String {
    let share: Option<f64> = status.utilization.as_ref().and_then(|share| share.parse().ok());
    let full = share.map_or("full".to_owned(), |share| format!("{:.0} % full", share * 100.0));
    let done = match status.last_action {
        Some(PressureAction::Reconfigure) => {
            let sequences = status.reconfigured_max_num_seqs.unwrap_or_default();
            let configured = status.original_max_num_seqs.unwrap_or_default();
            format!("its engine starts anew with {sequences} sequences instead of {configured}")
        }
        Some(PressureAction::EvictRequested) => "it goes to sleep".to_owned(),
        Some(PressureAction::Observed) | None => {
            "requests may be slow; lower maxNumSeqs or maxModelLen, or add replicas".to_owned()
        }
    };
    format!("its key-value cache is {full}; {done}")
}
