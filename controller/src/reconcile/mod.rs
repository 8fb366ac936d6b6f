//! Groups, looked at as they change: `observe` (from the world, once), `plan` (in core), `apply`,
//! `report`. What one pass did not finish the next one does: it starts from what there is.

mod apply;
mod caching;
mod departing;
mod error;
mod moving;
mod pruning;
mod putting_back;
mod report;
mod settle;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::ids::{GroupId, ModelId};
use flexinfer_core::planning::objects::Settings;
use flexinfer_core::planning::reconcile::{Observed, Plan, Seen, plan};
use flexinfer_core::planning::writing::Going;
use flexinfer_crds::Model;
use flexinfer_telemetry::traces::Tracer;
use futures::stream::{FuturesUnordered, StreamExt as _};
use kube::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::speeds::Speeds;
use crate::world::{Member, Sight, World};

use error::Error;
use write::Writer;

/// The first wait after a failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait after failures.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Whether anything was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wrote {
    /// There was nothing to write, or it has to wait.
    Nothing,
    Something,
}

impl Wrote {
    const fn any(there_is: bool) -> Self {
        if there_is { Self::Something } else { Self::Nothing }
    }
}

/// What became of one write and `another`: of two that failed the first is told.
fn both(one: Result<Wrote, Error>, another: Result<Wrote, Error>) -> Result<Wrote, Error> {
    one.and_then(|wrote| Ok(wrote.max(another?)))
}

/// Acts on groups.
pub(crate) struct Reconciler {
    world: Arc<World>,
    settings: Settings,
    writer: Writer,
    metrics: Metrics,
    speeds: Speeds,
    tracer: Tracer,
    /// The members of each group, as the last pass over it found them.
    seen: Mutex<BTreeMap<GroupId, BTreeMap<ModelId, Arc<Model>>>>,
    /// How often each group has failed in a row.
    failures: Mutex<BTreeMap<GroupId, u32>>,
}

impl Reconciler {
    pub(crate) fn new(
        client: Client,
        world: Arc<World>,
        settings: Settings,
        leadership: Leadership,
        (metrics, speeds): (Metrics, Speeds),
    ) -> Self {
        let writer = Writer::new(client, leadership);
        let (seen, failures) = (Mutex::default(), Mutex::default());
        let tracer = Tracer::of_this_process();
        Self { world, settings, writer, metrics, speeds, tracer, seen, failures }
    }

    /// Looks at groups as they become due, `at_once` of them side by side, for ever.
    pub(crate) async fn work(&self, at_once: usize) {
        let mut workers: FuturesUnordered<_> = (0..at_once).map(|_| self.work_alone()).collect();
        workers.next().await;
    }

    async fn work_alone(&self) {
        loop {
            let turn = self.world.queue.next().await;
            let group = turn.key().clone();
            let span = self.tracer.doing("controller.reconcile");
            span.note_with("flexinfer.group", || group.to_string());
            let result = span.around(Box::pin(self.look(&group))).await;
            if let Some(error) = result.as_ref().map_or_else(Some, |unfinished| unfinished.first())
            {
                span.fail(&error.to_string());
            }
            drop(span);
            self.metrics.reconciled(result.as_ref().is_ok_and(Vec::is_empty));
            match result {
                Ok(unfinished) if unfinished.is_empty() => {
                    self.failures.lock().remove(&group);
                }
                Ok(unfinished) => self.try_again(&group, &unfinished),
                // Nothing is written until the lead is back; if it never is, the process is ended.
                Err(_) => {
                    self.writer.lead_regained().await;
                    self.world.queue.wake(group);
                }
            }
        }
    }

    fn try_again(&self, group: &GroupId, unfinished: &[Error]) {
        let mut failures = self.failures.lock();
        let count = failures.entry(group.clone()).or_default();
        // After a conflict nothing is wrong: somebody else wrote, and the next pass sees what.
        let wrong = !unfinished.iter().all(Error::is_conflict);
        let factor = if wrong { 2_u32.saturating_pow(*count) } else { 1 };
        let wait = FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
        *count = count.saturating_add(u32::from(wrong));
        tracing::debug!(%group, unfinished = unfinished.len(), ?wait, "once more later");
        self.world.queue.wake_at(group.clone(), Instant::now() + wait);
    }

    /// One pass over one group, and what of it was not done. A member that something is wrong with stands in nobody's
    /// way; only a lost lead ends the pass.
    async fn look(&self, group: &GroupId) -> Result<Vec<Error>, Error> {
        let mut unfinished = Vec::new();
        let sight = self.world.sight(group);
        self.miss_departed(group, sight.as_ref().map_or(&[], |sight| &sight.members));
        let Some(sight) = sight else { return Ok(unfinished) };
        let Plan { wanted, revisit } = plan(&self.observed(&sight));
        if let Some(moment) = revisit {
            self.world.queue.wake_at(group.clone(), self.world.clock.instant(moment));
        }
        for wanted in wanted {
            let member = sight.members.iter().find(|member| member.id == wanted.id);
            let Some(member) = member else { continue };
            unfinished.extend(self.settle(group, member, wanted).await?);
        }
        Ok(unfinished)
    }

    fn observed<'a>(&'a self, sight: &'a Sight) -> Observed<'a> {
        Observed {
            group: &sight.group,
            members: sight.members.iter().map(seen).collect(),
            lease: sight.lease,
            claims: &sight.claims,
            results: &sight.results,
            kv_cache_usage: &sight.kv_cache_usage,
            cluster: sight.offers.cluster(),
            settings: &self.settings,
            now: self.world.clock.now(),
        }
    }
}

fn seen(member: &Member) -> Seen<'_> {
    Seen {
        id: &member.id,
        model: &member.model,
        effective: member.effective.as_deref(),
        complaints: &member.complaints,
        deployment: member.deployment.as_deref(),
        pods: member.pods.iter().map(AsRef::as_ref).collect(),
        jobs: member.jobs.iter().map(AsRef::as_ref).collect(),
        job_pods: member.job_pods.iter().map(AsRef::as_ref).collect(),
        adapters: member.adapters,
        demand: &member.demand,
        name_conflict: member.name_conflict.as_deref(),
        writing: &member.writing,
        dispute: member.dispute.as_ref(),
        going: going(member),
        progress: member.progress.as_ref(),
        record: member.record.clone(),
    }
}

/// What of its objects is being deleted.
fn going(member: &Member) -> Vec<Going> {
    let deployment = member.deployment.iter().map(|there| ("Deployment", &there.metadata));
    let service = member.service.iter().map(|there| ("Service", &there.metadata));
    let files = member.files.iter().map(|there| ("ConfigMap", &there.metadata));
    let all = deployment.chain(service).chain(files);
    all.filter_map(|(kind, there)| Going::of(kind, there)).collect()
}
