//! How the choice of endpoints is counted: what decided, and who was chosen.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use flexinfer_core::ids::EndpointId;
use flexinfer_core::routing::{Key, Source, Strategy};
use parking_lot::Mutex;
use prometheus::{IntCounter, IntCounterVec, IntGaugeVec};
use strum::IntoEnumIterator as _;

use super::registrar::Registrar;

/// Keys that are told apart for each model, strategy and source.
const DISTINCT_KEYS: usize = 10_000;
/// Endpoints of one model that are counted each by itself.
const TARGETS: usize = 1000;

/// The strategy had what it needs.
const POD: &str = "pod";
/// It goes by a key, and the request had none: spread by load. The original left such requests to the
/// Service, and its dashboards know this name.
const FALLBACK: &str = "service-fallback";
/// No key.
const NONE: &str = "none";

/// The tables, for all models.
#[derive(Clone)]
pub(super) struct RoutingTables {
    decisions: IntCounterVec,
    target_hits: IntCounterVec,
    key_cardinality: IntGaugeVec,
    key_overflow: IntCounterVec,
}

/// The series of one model.
pub(super) struct RoutingSeries {
    tables: RoutingTables,
    /// The commonest decision, in turn and without a key: looked up once.
    in_turn: OnceLock<IntCounter>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    keys: HashMap<(Strategy, Source), HashSet<u64>>,
    targets: BTreeSet<(Strategy, EndpointId)>,
}

impl RoutingTables {
    pub(super) fn register(new: &Registrar<'_>) -> prometheus::Result<Self> {
        let by_source = &["model", "strategy", "key_source"];
        Ok(Self {
            decisions: new.counter(
                "routing_decisions_total",
                "Endpoints chosen, by what decided.",
                &["model", "strategy", "key_source", "outcome"],
            )?,
            target_hits: new.counter(
                "routing_target_hits_total",
                "Endpoints chosen, by endpoint.",
                &["model", "strategy", "target"],
            )?,
            key_cardinality: new.gauge_by(
                "routing_key_cardinality",
                "Different keys seen so far.",
                by_source,
            )?,
            key_overflow: new.counter(
                "routing_key_cardinality_overflow_total",
                "Keys that were not told apart any more because there were too many.",
                by_source,
            )?,
        })
    }

    pub(super) fn model(&self) -> RoutingSeries {
        RoutingSeries { tables: self.clone(), in_turn: OnceLock::new(), seen: Mutex::default() }
    }

    /// Ends the series of one model, except those of its endpoints.
    pub(super) fn forget(&self, name: &str) {
        for strategy in Strategy::iter().map(<&str>::from) {
            let sources = Source::iter().map(<&str>::from).chain([NONE]);
            for source in sources {
                for outcome in [POD, FALLBACK] {
                    let labels = [name, strategy, source, outcome];
                    let _ = self.decisions.remove_label_values(&labels);
                }
                let _ = self.key_cardinality.remove_label_values(&[name, strategy, source]);
                let _ = self.key_overflow.remove_label_values(&[name, strategy, source]);
            }
        }
    }
}

impl RoutingSeries {
    pub(super) fn count(
        &self,
        model: &str,
        strategy: Strategy,
        key: Option<&Key>,
        endpoint: Option<&EndpointId>,
    ) {
        let source = key.map_or(NONE, |key| key.source().into());
        let outcome = if strategy.is_keyed() && key.is_none() { FALLBACK } else { POD };
        let labels = [model, strategy.into(), source, outcome];
        let look_up = || self.tables.decisions.with_label_values(&labels);
        if strategy == Strategy::RoundRobin && key.is_none() {
            self.in_turn.get_or_init(look_up).inc();
        } else {
            look_up().inc();
        }
        if let Some(key) = key {
            self.see(model, strategy, key);
        }
        if let Some(endpoint) = endpoint
            && self.know(strategy, endpoint)
        {
            let labels = [model, strategy.into(), &*endpoint.0];
            self.tables.target_hits.with_label_values(&labels).inc();
        }
    }

    /// Ends the series of endpoints that are no more.
    pub(super) fn keep_targets(&self, model: &str, kept: impl Fn(&EndpointId) -> bool) {
        self.seen.lock().targets.retain(|(strategy, endpoint)| {
            let stays = kept(endpoint);
            if !stays {
                let labels = [model, (*strategy).into(), &*endpoint.0];
                let _ = self.tables.target_hits.remove_label_values(&labels);
            }
            stays
        });
    }

    fn see(&self, model: &str, strategy: Strategy, key: &Key) {
        let labels = [model, strategy.into(), key.source().into()];
        let mut seen = self.seen.lock();
        let keys = seen.keys.entry((strategy, key.source())).or_default();
        let place = key.fingerprint();
        if keys.contains(&place) {
            return;
        }
        if keys.len() < DISTINCT_KEYS {
            keys.insert(place);
            self.tables.key_cardinality.with_label_values(&labels).inc();
        } else {
            self.tables.key_overflow.with_label_values(&labels).inc();
        }
    }

    /// Whether the endpoint is one of those that are counted.
    fn know(&self, strategy: Strategy, endpoint: &EndpointId) -> bool {
        let mut seen = self.seen.lock();
        let target = (strategy, endpoint.clone());
        seen.targets.contains(&target)
            || (seen.targets.len() < TARGETS && seen.targets.insert(target))
    }
}
