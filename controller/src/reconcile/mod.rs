//! Groups, looked at as they change: `observe` (from the world, once), `plan` (in core), `apply`,
//! `report`. What one pass did not finish the next one does: it starts from what there is.

mod apply;
mod caching;
mod error;
mod pruning;
mod report;
mod settle;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::ids::GroupId;
use flexinfer_core::planning::objects::Settings;
use flexinfer_core::planning::reconcile::{Observed, Plan, Seen, plan};
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

/// Acts on groups.
pub(crate) struct Reconciler {
    world: Arc<World>,
    settings: Settings,
    writer: Writer,
    metrics: Metrics,
    speeds: Speeds,
    tracer: Tracer,
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
        let (tracer, failures) = (Tracer::of_this_process(), Mutex::new(BTreeMap::new()));
        Self { world, settings, writer, metrics, speeds, tracer, failures }
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
            if let Err(error) = &result {
                span.fail(&error.to_string());
            }
            drop(span);
            self.metrics.reconciled(result.is_ok());
            match result {
                Ok(()) => {
                    self.failures.lock().remove(&group);
                }
                // Nothing is written until the lead is back; if it never is, the process is ended.
                Err(Error::LeadLost) => {
                    self.writer.lead_regained().await;
                    self.world.queue.wake(group);
                }
                Err(error) => self.try_again(&group, &error),
            }
        }
    }

    fn try_again(&self, group: &GroupId, error: &Error) {
        let mut failures = self.failures.lock();
        let count = failures.entry(group.clone()).or_default();
        // After a conflict nothing is wrong: somebody else wrote, and the next pass sees what.
        let factor = if error.is_conflict() { 1 } else { 2_u32.saturating_pow(*count) };
        let wait = FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
        *count = count.saturating_add(u32::from(!error.is_conflict()));
        let report = anyhow::Error::msg(error.to_string());
        tracing::warn!(%group, error = format!("{report:#}"), ?wait, "not finished; once more later");
        self.world.queue.wake_at(group.clone(), Instant::now() + wait);
    }

    /// One pass over one group. A member whose objects are refused stands in nobody's way.
    async fn look(&self, group: &GroupId) -> Result<(), Error> {
        let Some(sight) = self.world.sight(group) else { return Ok(()) };
        let Plan { wanted, revisit } = plan(&self.observed(&sight));
        if let Some(moment) = revisit {
            self.world.queue.wake_at(group.clone(), self.world.clock.instant(moment));
        }
        let mut unfinished = None;
        for wanted in wanted {
            let member = sight.members.iter().find(|member| member.id == wanted.id);
            let Some(member) = member else { continue };
            match self.settle(group, member, wanted).await {
                Err(error) if error.is_refusal() => unfinished = unfinished.or(Some(error)),
                settled => settled?,
            }
        }
        unfinished.map_or(Ok(()), Err)
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
        record: member.record.clone(),
    }
}
