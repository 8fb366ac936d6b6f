//! Groups, looked at as they change: `observe` (from the world, once), `plan` (in core), `apply`,
//! `report`. What one pass did not finish the next one does: it starts from what there is.

mod apply;
mod caching;
mod error;
mod pruning;
mod report;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::ids::GroupId;
use flexinfer_core::planning::objects::Settings;
use flexinfer_core::planning::reconcile::{Observed, Plan, Seen, Wanted, plan};
use flexinfer_core::planning::status::Announcement;
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
        let mut refused = None;
        for wanted in wanted {
            let member = sight.members.iter().find(|member| member.id == wanted.id);
            let Some(member) = member else { continue };
            match self.settle(member, wanted).await {
                Err(error) if error.is_refusal() => {
                    self.complain(group, member, &error).await;
                    refused = refused.or(Some(error));
                }
                settled => settled?,
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Tells people what the server refuses for a member, once until it is as it shall be.
    async fn complain(&self, group: &GroupId, member: &Member, error: &Error) {
        let told = self.failures.lock().get(group).is_some_and(|count| *count > 0);
        if told || error.is_conflict() || error.is_absence() {
            return;
        }
        let announcement = Announcement::new(true, "Refused", error.to_string());
        self.writer.announce(&member.model, announcement).await;
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

    /// Makes one member as it shall be, and says so.
    async fn settle(&self, member: &Member, wanted: Wanted) -> Result<(), Error> {
        let Wanted {
            id,
            finalizer,
            service,
            files,
            caching,
            engine,
            jobs,
            measured,
            leftovers,
            released,
            status,
            announcements,
            verdict,
        } = wanted;
        if let Some(verdict) = &verdict {
            self.world.remember(&id, verdict.record.clone());
        }
        self.hold_on(member, finalizer).await?;
        self.apply_service(member, service).await?;
        self.apply_files(member, files).await?;
        self.take_step(member, caching).await?;
        self.apply_engine(member, engine).await?;
        self.speeds.saw(member, measured.as_ref(), &status);
        self.metrics.saw(member, &status, verdict.as_ref());
        self.report(member, status, verdict.as_ref(), announcements).await?;
        self.make_jobs(member, jobs).await?;
        self.prune(member, leftovers).await?;
        self.release(member, released).await?;
        self.let_go(member, finalizer).await
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
        record: member.record.clone(),
    }
}
