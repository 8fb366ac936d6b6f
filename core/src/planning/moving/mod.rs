//! Engines on nodes that are about to be taken away. Another is started in the place of each at once, somewhere else,
//! and until that serves the old one does: only then it is told to go, and finishes what it has.

use k8s_openapi::api::core::v1::{Pod, Taint, Toleration};

use super::model::{ended, ending, ready, unschedulable};
use super::objects::{is_apart, revision, template};
use super::placing::Cluster;
use super::pod::PodId;

#[cfg(test)]
mod tests;

/// Who owns the pods, and what is known of where they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    /// The nodes.
    pub(crate) cluster: Cluster<'a>,
    /// How many engines shall serve.
    pub(crate) replicas: u32,
    /// It is being drained: nothing is started for it any more.
    pub(crate) draining: bool,
    /// What has to be before an engine ends that serves.
    pub(crate) until: Until,
    /// No further pod can be made for them, since a quota has no room, say.
    pub(crate) full: bool,
    /// The number of their Deployment's newest template.
    pub(crate) revision: Option<&'a str>,
    /// At an edit one of them ends before another is made in its place.
    pub(crate) ends_first: bool,
}

/// What has to be before an engine ends in whose place another shall serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Until {
    /// The other serves.
    #[default]
    Served,
    /// The other has a node: it gets what they hang on only then, and may find none that has it.
    Placed,
    /// Nothing: the other finds no node before.
    Gone,
}

/// What is done about pods on nodes that go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moving {
    /// They go on, and others are started in their place.
    pub apart: Vec<PodId>,
    /// They were set apart, and are given back to who made them: their nodes stay after all.
    pub back: Vec<PodId>,
    /// They are told to end: others serve in their place, or are about to.
    pub over: Vec<PodId>,
    /// They are told to end before anything is started in their place: nothing could be.
    pub at_once: Vec<PodId>,
}

/// What is done about those of `pods` that are on nodes that go. A pod is set apart once, and told to end once: what
/// was done stands on it, until it is undone.
pub(crate) fn moving<'p>(pods: impl IntoIterator<Item = &'p Pod>, owner: Owner<'_>) -> Moving {
    let (leaving, staying): (Vec<&Pod>, Vec<&Pod>) =
        pods.into_iter().filter(|pod| !ended(pod)).partition(|pod| ending(pod));
    let (mut apart, own): (Vec<&Pod>, Vec<&Pod>) =
        staying.into_iter().partition(|pod| is_apart(pod));
    let missing = usize::try_from(owner.replicas).unwrap_or(usize::MAX).saturating_sub(own.len());
    let comes = !leaving.is_empty() || own.iter().any(|pod| !ready(pod));
    let (doomed, safe): (Vec<&Pod>, Vec<&Pod>) =
        own.into_iter().partition(|pod| owner.has_to_leave(pod));
    // Those that serve come last: as many of them are over as are not needed any more.
    apart.sort_by_key(|pod| (owner.is_needed(pod), ready(pod)));
    let serving = |pods: &[&Pod]| pods.iter().filter(|pod| ready(pod)).count();
    let wanted = usize::try_from(owner.replicas).unwrap_or(usize::MAX);
    let needed = apart.iter().filter(|pod| owner.is_needed(pod)).count();
    let placed = apart.len() + safe.iter().filter(|pod| has_node(pod)).count();
    let early = (apart.len() - needed).min(placed.saturating_sub(wanted));
    let spare = (serving(&safe) + serving(&apart)).saturating_sub(wanted).min(needed);
    let ends = early.saturating_add(spare).min(apart.len());
    let (rest, mut over) = (apart.split_off(ends), apart);
    if owner.replicas == 0 || owner.draining {
        return Moving { over: ids(&over), ..Moving::default() };
    }
    let (back, outdated) = if owner.full && missing > 0 {
        owner.crowded(rest, missing, comes)
    } else {
        owner.undone(rest, &safe)
    };
    over.extend(outdated);
    let (to_set_apart, at_once) =
        if owner.until == Until::Gone { (Vec::new(), doomed) } else { (doomed, Vec::new()) };
    Moving { apart: ids(&to_set_apart), back: ids(&back), over: ids(&over), at_once: ids(&at_once) }
}

impl Owner<'_> {
    /// Whether the node of `pod` goes, and takes no other like it: what was started in its place could else come
    /// there, again and again.
    fn has_to_leave(&self, pod: &Pod) -> bool {
        let Some(spec) = &pod.spec else { return false };
        let node = spec.node_name.as_deref().and_then(|name| self.cluster.leaving(name));
        let tolerated = |taint: &Taint| {
            spec.tolerations.iter().flatten().any(|toleration| tolerates(toleration, taint))
        };
        node.is_some_and(|taints| taints.iter().any(|taint| !tolerated(taint)))
    }

    /// Whether `pod` goes on until another serves. One that does not serve now may do so again before any other, and one
    /// may be the only one that finds its volume: those end once another has a node to load on.
    fn is_needed(&self, pod: &Pod) -> bool {
        ready(pod) && self.until == Until::Served
    }

    /// Those of `apart` whose nodes stay after all, while nothing of their Deployment's `own` serves in their place:
    /// that may want the very GPU that they have. One goes back for each that was made from the same template, which
    /// their ReplicaSet ends then. And where an edit ends one before another is made, one ends for each of a newer
    /// template that finds no place, as it would have ended at that change had it not been set apart.
    fn undone<'p>(&self, apart: Vec<&'p Pod>, own: &[&Pod]) -> (Vec<&'p Pod>, Vec<&'p Pod>) {
        let mut idle: Vec<&Pod> = own.iter().copied().filter(|pod| !ready(pod)).collect();
        let (mut back, mut outdated) = (Vec::new(), Vec::new());
        for pod in apart.into_iter().filter(|pod| self.stays(pod)) {
            let Some(made_from) = template(pod) else { continue };
            let same = |other: &&Pod| template(other) == Some(made_from);
            let newer =
                |other: &&Pod| self.ends_first && !same(other) && unschedulable(other).is_some();
            if let Some(at) = idle.iter().position(same).filter(|_| ready(pod)) {
                idle.swap_remove(at);
                back.push(pod);
            } else if let Some(at) = idle.iter().position(newer) {
                idle.swap_remove(at);
                outdated.push(pod);
            }
        }
        (back, outdated)
    }

    /// What becomes of those of `apart` for which nothing can be started, while so many are `missing`. Those whose nodes
    /// stay go back: their ReplicaSet has room for them. Of those that their Model's last edit left behind one ends at a
    /// time, unless another already `comes`, and makes room for what the Model is now: nothing else would. Where an edit
    /// makes another engine first, the older template wants that room as well.
    fn crowded<'p>(
        &self,
        apart: Vec<&'p Pod>,
        missing: usize,
        comes: bool,
    ) -> (Vec<&'p Pod>, Vec<&'p Pod>) {
        let known = apart.into_iter().filter(|pod| revision(*pod).is_some());
        let (same, older): (Vec<&Pod>, Vec<&Pod>) =
            known.partition(|pod| revision(*pod) == self.revision);
        let back = same.into_iter().filter(|pod| template(pod).is_some() && self.stays(pod));
        let over = older.into_iter().take(usize::from(!comes && self.ends_first));
        (back.take(missing).collect(), over.collect())
    }

    /// Whether the node of `pod` is known to stay. One that is gone is no reason to end what was made in its place.
    fn stays(&self, pod: &Pod) -> bool {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        node.is_some_and(|name| self.cluster.stays(name))
    }
}

fn has_node(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

/// As Kubernetes compares them.
fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let any = |own: &Option<String>| own.as_ref().is_none_or(String::is_empty);
    let effect = any(&toleration.effect) || toleration.effect.as_ref() == Some(&taint.effect);
    let key = any(&toleration.key) || toleration.key.as_ref() == Some(&taint.key);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let value = toleration.value.as_deref().unwrap_or_default();
    effect && key && (exists || value == taint.value.as_deref().unwrap_or_default())
}

fn ids(pods: &[&Pod]) -> Vec<PodId> {
    pods.iter().filter_map(|pod| PodId::of(pod)).collect()
}
