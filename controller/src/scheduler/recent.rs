//! The last rankings, for `/debug/score`: the numbers that kube-scheduler sees hide what they are made of.

use std::collections::VecDeque;

use flexinfer_core::placement::Pod;
use flexinfer_core::placement::score::{Terms, Worth};
use parking_lot::Mutex;
use serde::Serialize;

/// Rankings that are kept.
const KEPT: usize = 32;

/// Nodes of a ranking that are kept, the best ones.
const NODES: usize = 32;

#[derive(Default)]
pub(super) struct Recent {
    rankings: Mutex<VecDeque<Ranking>>,
}

/// How one pod's nodes were ranked.
#[derive(Clone, Debug, Serialize)]
struct Ranking {
    namespace: String,
    pod: String,
    /// Nodes of the question, of which the best are listed.
    count: usize,
    nodes: Vec<Ranked>,
}

#[derive(Clone, Debug, Serialize)]
struct Ranked {
    node: String,
    score: i64,
    raw: Option<f64>,
    terms: Option<Terms>,
}

impl Recent {
    pub(super) fn keep<'a>(
        &self,
        pod: &Pod,
        names: impl Iterator<Item = &'a str>,
        worths: &[Worth],
    ) {
        let mut best: Vec<(&str, &Worth, Option<f64>)> = names
            .zip(worths)
            .map(|(name, worth)| (name, worth, worth.terms.as_ref().map(Terms::sum)))
            .collect();
        // Only the best are put in order: a question may have thousands.
        let by_raw = |a: &Option<f64>, b: &Option<f64>| {
            b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal)
        };
        if best.len() > NODES {
            best.select_nth_unstable_by(NODES, |a, b| by_raw(&a.2, &b.2));
            best.truncate(NODES);
        }
        best.sort_by(|a, b| by_raw(&a.2, &b.2).then_with(|| a.0.cmp(b.0)));
        if let Some((node, worth, raw)) = best.first() {
            tracing::debug!(pod = pod.name, node, score = worth.number, raw, terms = ?worth.terms, "the best node");
        }
        let nodes = best.into_iter().map(|(node, worth, raw)| Ranked {
            node: node.to_owned(),
            score: worth.number,
            raw,
            terms: worth.terms,
        });
        let ranking = Ranking {
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            count: worths.len(),
            nodes: nodes.collect(),
        };
        let mut rankings = self.rankings.lock();
        rankings.truncate(KEPT - 1);
        rankings.push_front(ranking);
    }

    /// The rankings as JSON, the latest first.
    pub(super) fn page(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(&*self.rankings.lock())
    }
}
