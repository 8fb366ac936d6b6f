//! How well nodes suit a pod: the original's formula, term by term, and the numbers made of it.

use serde::Serialize;

use super::fair_share::{Tenant, sought_after};
use super::speeds::Speeds;
use super::{Node, Pod, Reservation, Results, Room, ranking};

/// How much each term counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// For each token per second.
    pub tps: f64,
    /// Against each percent of the GPUs in use.
    pub util: f64,
    /// Against each unit of cost per hour.
    pub cost: f64,
    /// Against a full key-value cache.
    pub cache: f64,
    /// For a node that is all free.
    pub vram_free: f64,
}

impl Default for Weights {
    /// The original's: 0.7, 0.2, 0.1, 0.3 and 10.
    fn default() -> Self {
        Self { tps: 0.7, util: 0.2, cost: 0.1, cache: 0.3, vram_free: 10.0 }
    }
}

/// A key-value cache that is fuller than this is under pressure.
const PRESSURE_FROM: f64 = 0.85;

/// What each share of the cache above that costs.
const PRESSURE: f64 = 20.0;

/// One node of a request.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The node.
    pub node: &'a Node,
    /// What the pods on it take.
    pub reservations: &'a [Reservation],
}

/// What one node is worth, term by term; their sum is the raw score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// For its speed.
    pub tps: f64,
    /// Against its being busy; not above zero, as all terms "against".
    pub util: f64,
    /// Against its cost.
    pub cost: f64,
    /// Against the use of its key-value cache.
    pub cache: f64,
    /// For its free memory.
    pub vram_free: f64,
    /// Against a cache that is nearly full.
    pub pressure: f64,
    /// For or against its being sought after, by what the pod's tenant has.
    pub tenant: f64,
}

impl Terms {
    /// The raw score.
    pub fn sum(&self) -> f64 {
        let Self { tps, util, cost, cache, vram_free, pressure, tenant } = self;
        tps + util + cost + cache + vram_free + pressure + tenant
    }
}

/// What a node is worth to a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worth {
    /// Its terms; `None` for a node that is not known or says what cannot be read.
    pub terms: Option<Terms>,
    /// The number for kube-scheduler, 0 to 10.
    pub number: i64,
}

/// What each of `candidates` is worth to `pod`, in the same order; `None` stands for a node that is not
/// known. To a pod without GPUs all are worth the same.
pub fn rank(
    pod: &Pod,
    candidates: &[Option<Candidate<'_>>],
    results: Results<'_>,
    weights: &Weights,
    tenant: Option<&Tenant>,
) -> Vec<Worth> {
    if pod.gpus == 0 {
        return vec![Worth::default(); candidates.len()];
    }
    let mut speeds = Speeds::new(pod, results);
    let ranked = |candidate: &Option<Candidate<'_>>| {
        candidate.is_some_and(|candidate| !candidate.node.cannot_be_ranked())
    };
    let known: Vec<Option<Candidate<'_>>> =
        candidates.iter().map(|candidate| candidate.filter(|_| ranked(candidate))).collect();
    let speed: Vec<f64> = known
        .iter()
        .map(|candidate| candidate.map_or(0.0, |candidate| speeds.on(candidate.node)))
        .collect();
    let mut terms: Vec<Option<Terms>> = known
        .iter()
        .zip(&speed)
        .map(|(candidate, speed)| Some(of_node(pod, &(*candidate)?, *speed, weights)))
        .collect();
    if let Some(tenant) = tenant {
        let memory = |candidate: &Option<Candidate<'_>>| {
            candidate.and_then(|candidate| candidate.node.vram.known().copied()).unwrap_or_default()
        };
        let memory: Vec<u64> = known.iter().map(memory).collect();
        for (terms, sought) in terms.iter_mut().zip(sought_after(&speed, &memory)) {
            if let Some(terms) = terms {
                terms.tenant = tenant.adjustment * sought;
            }
        }
    }
    let raw: Vec<Option<f64>> = terms.iter().map(|terms| Some(terms.as_ref()?.sum())).collect();
    let numbers = ranking::numbers(&raw);
    terms.into_iter().zip(numbers).map(|(terms, number)| Worth { terms, number }).collect()
}

fn of_node(pod: &Pod, candidate: &Candidate<'_>, speed: f64, weights: &Weights) -> Terms {
    let node = candidate.node;
    let said = |said: &super::Said<f64>| said.known().copied().unwrap_or_default();
    let cache = said(&node.kv_cache_usage);
    let room = Room::of(node, candidate.reservations);
    // Not -x: people read the terms, and -0.0 would make them wonder.
    let against = |x: f64| 0.0 - x;
    Terms {
        tps: speed * weights.tps,
        util: against(said(&node.utilization) * weights.util),
        cost: against(said(&node.cost) * weights.cost),
        cache: against(cache * weights.cache),
        vram_free: room.share(node, pod.gpus) * weights.vram_free,
        pressure: against((cache - PRESSURE_FROM).max(0.0) * PRESSURE),
        tenant: 0.0,
    }
}
