//! From a question to its answer: looks the nodes up, asks `core`, and counts.

use std::sync::Arc;
use std::time::Instant;

use flexinfer_core::placement::score::{Candidate, Weights, rank};
use flexinfer_core::placement::{FairShare, Node, Pod, Refusal, Tenant, refusal};
use flexinfer_telemetry::traces::Tracer;

use super::arguments::Arguments;
use super::metrics::{Metrics, Phase};
use super::protocol::{BadQuestion, HostPriority, Nodes, Question};
use super::recent::Recent;
use super::view::{State, View};

/// Everything that answers need.
pub(super) struct Extender {
    view: Arc<View>,
    weights: Weights,
    fair_share: Option<FairShare>,
    tenant_label: Option<String>,
    pub(super) tracer: Tracer,
    pub(super) metrics: Metrics,
    pub(super) recent: Recent,
}

impl Extender {
    pub(super) fn new(arguments: &Arguments, view: Arc<View>, metrics: Metrics) -> Self {
        Self {
            view,
            weights: arguments.weights(),
            fair_share: arguments.fair_share(),
            tenant_label: arguments.tenant_label().map(str::to_owned),
            tracer: Tracer::of_this_process(),
            metrics,
            recent: Recent::default(),
        }
    }

    /// What is still awaited before pods with GPUs can be placed.
    pub(super) fn awaited(&self) -> Vec<&'static str> {
        self.view.now().awaited()
    }

    /// Which nodes can hold the pod, as JSON.
    pub(super) fn filter(&self, body: &[u8]) -> Result<Vec<u8>, BadQuestion> {
        self.counted(Phase::Filter, || {
            let question = Question::read(body)?;
            let pod = Pod::read(&question.pod, self.tenant_label.as_deref());
            let state = self.view.now();
            if let Some(error) = not_yet(&pod, &state) {
                tracing::warn!(pod = pod.name, error, "a pod is refused");
                let mut refused = question.nodes.filtered(&[]);
                refused.error = error;
                return Ok((serde_json::to_vec(&refused)?, "not_ready"));
            }
            let refusals = refusals(&pod, &question.nodes, &state);
            drop(state);
            self.metrics.refused(&refusals);
            let passed = refusals.iter().filter(|refusal| refusal.is_none()).count();
            tracing::debug!(pod = pod.name, nodes = refusals.len(), passed, "filtered");
            let result = if passed == 0 && question.nodes.len() > 0 { "none" } else { "ok" };
            Ok((serde_json::to_vec(&question.nodes.filtered(&refusals))?, result))
        })
    }

    /// How well each node suits the pod, as JSON.
    pub(super) fn score(&self, body: &[u8]) -> Result<Vec<u8>, BadQuestion> {
        self.counted(Phase::Score, || {
            let question = Question::read(body)?;
            let pod = Pod::read(&question.pod, self.tenant_label.as_deref());
            let state = self.view.now();
            let tenant = self.tenant(&pod, &state);
            let candidates = candidates(&question.nodes, &state);
            let results = state.results_for(&pod);
            let worths = rank(&pod, &candidates, results, &self.weights, tenant.as_ref());
            drop(state);
            if pod.gpus > 0 {
                self.recent.keep(&pod, question.nodes.names(), &worths);
            }
            let hosts = question.nodes.names().zip(&worths);
            let list: Vec<_> =
                hosts.map(|(host, worth)| HostPriority { host, score: worth.number }).collect();
            Ok((serde_json::to_vec(&list)?, "ok"))
        })
    }

    fn tenant(&self, pod: &Pod, state: &State) -> Option<Tenant> {
        let share = self.fair_share.filter(|_| pod.gpus > 0)?;
        let tenant = share.tenant(state.gpus_of_tenant(&pod.tenant, &pod.uid), pod.gpus);
        self.metrics.tenant(pod, &tenant);
        Some(tenant)
    }

    fn counted(
        &self,
        phase: Phase,
        answer: impl FnOnce() -> Result<(Vec<u8>, &'static str), BadQuestion>,
    ) -> Result<Vec<u8>, BadQuestion> {
        let begun = Instant::now();
        let answered = answer();
        let result = answered.as_ref().map_or("bad_request", |(_, result)| result);
        self.metrics.answered(phase, result, begun.elapsed());
        answered.map(|(answer, _)| answer)
    }
}

/// Why no pod with a GPU can be placed yet.
fn not_yet(pod: &Pod, state: &State) -> Option<String> {
    let awaited = state.awaited();
    let waits = pod.gpus > 0 && !awaited.is_empty();
    waits.then(|| format!("the extender has not seen all {} yet", awaited.join(" and ")))
}

fn refusals(pod: &Pod, nodes: &Nodes<'_>, state: &State) -> Vec<Option<Refusal>> {
    if pod.gpus == 0 {
        return vec![None; nodes.len()];
    }
    let of_node = |candidate: Option<Candidate<'_>>| match candidate {
        None => Some(Refusal::UnknownNode),
        Some(Candidate { node, reservations }) => refusal(pod, node, reservations),
    };
    candidates(nodes, state).into_iter().map(of_node).collect()
}

/// The nodes of a question with what is promised of them; `None` for those that are not known.
fn candidates<'a>(nodes: &'a Nodes<'_>, state: &'a State) -> Vec<Option<Candidate<'a>>> {
    let candidate = |name: &str, node: Option<&'a Node>| {
        node.map(|node| Candidate { node, reservations: state.reservations(name) })
    };
    match nodes {
        Nodes::Names(names) => names.iter().map(|name| candidate(name, state.node(name))).collect(),
        Nodes::Whole(nodes) => {
            nodes.iter().map(|whole| candidate(&whole.name, Some(&whole.node))).collect()
        }
    }
}
