//! Which model of a service label answered, and why that one.

use std::collections::BTreeSet;

use flexinfer_core::routing::LabelRouting;
use parking_lot::Mutex;
use prometheus::IntCounterVec;
use strum::IntoEnumIterator as _;

use super::registrar::Registrar;

/// A model that was up.
const READY: &str = "ready";
/// None was up: one is woken.
const COLD: &str = "cold";

/// The tables, and which series are in them: as many as there are labels and models of theirs.
pub(super) struct LabelTables {
    decisions: IntCounterVec,
    target_hits: IntCounterVec,
    seen: Mutex<BTreeSet<(Box<str>, Box<str>)>>,
}

impl LabelTables {
    pub(super) fn register(new: &Registrar<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            decisions: new.counter(
                "label_group_route_decisions_total",
                "Models chosen for service labels: one that was `ready`, or a `cold` one because none was.",
                &["label", "strategy", "outcome"],
            )?,
            target_hits: new.counter(
                "label_group_route_target_hits_total",
                "Models chosen for service labels, by model.",
                &["label", "strategy", "model"],
            )?,
            seen: Mutex::default(),
        })
    }

    /// `model` was chosen for `label`.
    pub(super) fn count(&self, label: &str, strategy: LabelRouting, model: &str, ready: bool) {
        let strategy = strategy.into();
        let outcome = if ready { READY } else { COLD };
        self.decisions.with_label_values(&[label, strategy, outcome]).inc();
        self.target_hits.with_label_values(&[label, strategy, model]).inc();
        let mut seen = self.seen.lock();
        // Looked for before it is put in: mostly it is there.
        if !seen.iter().any(|(known, target)| **known == *label && **target == *model) {
            seen.insert((label.into(), model.into()));
        }
    }

    /// `model` is no more; with the last model of a label the label's own series end.
    pub(super) fn forget(&self, model: &str) {
        let mut seen = self.seen.lock();
        let labels: Vec<Box<str>> = seen
            .iter()
            .filter(|(_, target)| **target == *model)
            .map(|(label, _)| label.clone())
            .collect();
        seen.retain(|(_, target)| **target != *model);
        for label in labels {
            let is_over = !seen.iter().any(|(known, _)| *known == label);
            for strategy in LabelRouting::iter().map(<&str>::from) {
                let _ = self.target_hits.remove_label_values(&[&label, strategy, model]);
                for outcome in [READY, COLD].into_iter().filter(|_| is_over) {
                    let _ = self.decisions.remove_label_values(&[&label, strategy, outcome]);
                }
            }
        }
    }
}
