//! A cache that fills up and empties, step by step.

use serde_json::{Value, json};

use super::*;

/// A model that is looked at again and again.
struct Watched {
    wishes: KvCache,
    status: Option<KvCacheStatus>,
    sequences: Option<u32>,
    up: bool,
    serving: bool,
}

fn at(minutes: u64) -> Moment {
    Moment::after_origin(Duration::from_mins(1_000_000 + minutes))
}

fn watched(wishes: Value) -> Watched {
    let wishes = serde_json::from_value(wishes).unwrap();
    Watched { wishes, status: None, sequences: Some(64), up: true, serving: true }
}

impl Watched {
    /// Looks at the cache in that minute, and keeps what comes of it.
    fn look(&mut self, usage: f64, minute: u64) -> Pressure {
        let pressure = pressure(Seen {
            wishes: Some(&self.wishes),
            usage: Some(usage),
            serving: self.serving,
            up: self.up,
            sequences: self.sequences,
            status: self.status.as_ref(),
            now: at(minute),
        });
        self.status.clone_from(&pressure.status);
        pressure
    }

    fn pressed(&mut self, usage: f64, minute: u64) -> bool {
        self.look(usage, minute).status.unwrap().pressure == Some(true)
    }

    fn told(&self) -> &KvCacheStatus {
        self.status.as_ref().unwrap()
    }
}

#[test]
fn a_model_that_says_nothing_of_its_cache_is_left_alone() {
    let mut full = watched(json!({}));
    full.look(0.99, 0);
    let seen = Seen {
        wishes: None,
        usage: Some(0.99),
        serving: true,
        up: true,
        sequences: Some(64),
        status: full.status.as_ref(),
        now: at(1),
    };
    assert_eq!(pressure(seen), Pressure::default());
}

#[test]
fn pressure_begins_at_the_high_mark_and_ends_at_the_low_one() {
    let mut model = watched(json!({}));
    assert!(!model.pressed(0.84, 0));
    assert!(model.pressed(0.85, 1));
    assert!(model.pressed(0.61, 2));
    assert!(!model.pressed(0.60, 3));
    assert!(!model.pressed(0.84, 4));
    let mut own = watched(json!({ "highWatermark": "0.5", "lowWatermark": "200m" }));
    assert!(own.pressed(0.5, 0) && own.pressed(0.3, 1) && !own.pressed(0.2, 2));
}

#[test]
fn observing_only_tells() {
    let mut model = watched(json!({}));
    let pressure = model.look(0.9, 0);
    assert_eq!((pressure.sequences, pressure.evict), (None, false));
    assert_eq!(model.told().last_action, Some(PressureAction::Observed));
    assert_eq!(model.told().utilization.as_deref(), Some("0.9000"));
}

#[test]
fn a_share_that_hardly_moves_is_not_written_again() {
    let mut model = watched(json!({}));
    model.look(0.30, 0);
    let before = model.status.clone();
    model.look(0.34, 1);
    assert_eq!(model.status, before);
    model.look(0.36, 2);
    assert_eq!(model.told().utilization.as_deref(), Some("0.3600"));
}

#[test]
fn reconfiguring_halves_the_sequences_and_gives_them_back_after_the_cooldown() {
    let mut model = watched(json!({ "pressurePolicy": "Reconfigure" }));
    assert_eq!(model.look(0.9, 0).sequences, Some(32));
    assert_eq!(model.told().original_max_num_seqs, Some(64));
    let soon = model.look(0.9, 2);
    assert_eq!(soon.sequences, Some(32), "not twice within the cooldown");
    assert_eq!(soon.look_again, Some(at(5)));
    assert_eq!(model.look(0.9, 5).sequences, Some(16), "again, when it did not help");
    assert_eq!(model.look(0.1, 6).sequences, Some(16), "for as long as the cooldown");
    assert_eq!(model.look(0.1, 10).sequences, None);
    assert_eq!(model.told().reconfigured, None);
}

#[test]
fn an_engine_that_starts_anew_keeps_its_sequences() {
    let mut model = watched(json!({ "pressurePolicy": "Reconfigure" }));
    model.look(0.9, 0);
    model.serving = false;
    let loading = model.look(0.9, 1);
    assert_eq!(loading.sequences, Some(32));
    assert_eq!(model.told().utilization, None, "what the node says is the older engine's");
}

#[test]
fn an_engine_whose_sequences_cannot_be_set_is_only_observed() {
    let mut model = watched(json!({ "pressurePolicy": "Reconfigure" }));
    model.sequences = None;
    assert_eq!(model.look(0.9, 0).sequences, None);
    assert_eq!(model.told().last_action, Some(PressureAction::Observed));
}

#[test]
fn other_sequences_in_the_spec_end_the_reconfiguration() {
    let mut model = watched(json!({ "pressurePolicy": "Reconfigure" }));
    model.look(0.9, 0);
    model.sequences = Some(40);
    assert_eq!(model.look(0.7, 1).sequences, None);
}

#[test]
fn an_evicted_model_sleeps_once_and_may_come_back() {
    let mut model = watched(json!({ "pressurePolicy": "Evict" }));
    assert!(model.look(0.9, 0).evict);
    assert_eq!(model.told().last_action, Some(PressureAction::EvictRequested));
    assert!(model.look(0.3, 1).evict, "it is draining, and gateways were told");
    (model.up, model.serving) = (false, false);
    assert!(!model.look(0.9, 2).evict, "it is gone and may be started");
    assert_eq!((model.told().evicted, model.told().pressure), (Some(true), Some(false)));
    (model.up, model.serving) = (true, true);
    assert!(!model.look(0.9, 3).evict, "what the node says may be the older engine's");
    assert!(model.look(0.9, 8).evict, "still full after the cooldown");
}

#[test]
fn a_wish_that_changes_ends_what_was_under_way() {
    let mut model = watched(json!({ "pressurePolicy": "Evict" }));
    assert!(model.look(0.9, 0).evict);
    model.wishes.pressure_policy = Some(PressurePolicy::Observe);
    assert!(!model.look(0.9, 1).evict);
    assert_eq!(model.told().evicted, None);
}

#[test]
fn nothing_new_is_said_where_nothing_is_new() {
    for policy in ["Observe", "Reconfigure", "Evict"] {
        let mut model = watched(json!({ "pressurePolicy": policy }));
        model.look(0.9, 0);
        let before = model.status.clone();
        model.look(0.9, 1);
        assert_eq!(model.status, before, "{policy}");
    }
}
