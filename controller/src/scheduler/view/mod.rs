//! The cluster as watches keep it: nodes as placement sees them, what pods were promised, what was measured.

mod nodes;
mod pods;
mod results;
mod watching;

#[cfg(test)]
mod fixture;

use flexinfer_core::placement::{Node, Pod, Reservation, Results};
use parking_lot::{RwLock, RwLockReadGuard};

pub(super) use watching::watch;

use nodes::Nodes;
use pods::Pods;
use results::Measured;

/// What is known of the cluster. One lock for all of it: a question is answered from one state.
pub(super) struct View {
    state: RwLock<State>,
}

/// One state of the view.
pub(super) struct State {
    nodes: Nodes,
    pods: Pods,
    measured: Measured,
}

impl View {
    pub(super) fn new(tenant_label: Option<String>) -> Self {
        let state = State {
            nodes: Nodes::default(),
            pods: Pods::new(tenant_label),
            measured: Measured::default(),
        };
        Self { state: RwLock::new(state) }
    }

    /// The state as it is now; nothing changes while it is held.
    pub(super) fn now(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }
}

impl State {
    /// Which watches have not shown everything yet; empty once all have.
    pub(super) fn awaited(&self) -> Vec<&'static str> {
        let watches = [
            ("nodes", self.nodes.complete),
            ("pods", self.pods.complete),
            ("benchmark results", self.measured.complete()),
        ];
        watches.into_iter().filter(|(_, complete)| !complete).map(|(name, _)| name).collect()
    }

    pub(super) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.known.get(name)
    }

    /// What the pods on a node take of it.
    pub(super) fn reservations(&self, node: &str) -> &[Reservation] {
        self.pods.on(node)
    }

    /// The GPUs of a tenant's pods that have a node, `but` not those of one pod.
    pub(super) fn gpus_of_tenant(&self, tenant: &str, but: &str) -> u64 {
        self.pods.gpus_of_tenant(tenant, but)
    }

    pub(super) fn results_for(&self, pod: &Pod) -> Results<'_> {
        self.measured.for_pod(pod)
    }
}

/// The part of the state that one watch keeps.
trait Shelf<K> {
    /// What is kept of an object.
    type Kept: Send;

    /// What shall be kept of `object`, and under which key.
    fn read(object: &K, tenant_label: Option<&str>) -> (String, Option<Self::Kept>);

    /// Where it is kept.
    fn of(state: &mut State) -> &mut Self;

    /// Keeps what is new of an object, or nothing more of it.
    fn put(&mut self, key: String, kept: Option<Self::Kept>);

    /// Keeps these and nothing else: the watch has shown everything.
    fn replace(&mut self, all: Vec<(String, Option<Self::Kept>)>);
}
