//! What the controller counts, under the original's names.

use std::time::Duration;

use flexinfer_core::ids::GroupId;
use flexinfer_core::planning::group::{Standing, Verdict};
use flexinfer_core::planning::status::last_load;
use flexinfer_crds::model::{ModelStatus, Phase};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use strum::IntoEnumIterator as _;

use crate::world::Member;

/// Seconds that a load may take, as the original's histogram has them.
const LOADS: [f64; 9] = [0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0, 60.0, 120.0];

/// The places of a member in its group, as `flexinfer_sharedgroup_state` names them.
const STATES: [&str; 4] = ["Active", "Draining", "Queued", "Preempted"];

/// Every series of the controller.
#[derive(Clone)]
pub(crate) struct Metrics {
    reconciles: IntCounterVec,
    phase: IntGaugeVec,
    transitions: IntCounterVec,
    group_state: IntGaugeVec,
    preemptions: IntCounterVec,
    cold_start: HistogramVec,
    swap: HistogramVec,
    preload: IntGaugeVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone()))?;
            Ok::<_, prometheus::Error>(counters)
        };
        let seconds = |name: &str, help: &str, labels: &[&str]| {
            let options = HistogramOpts::new(name, help).buckets(LOADS.to_vec());
            let histograms = HistogramVec::new(options, labels)?;
            registry.register(Box::new(histograms.clone()))?;
            Ok::<_, prometheus::Error>(histograms)
        };
        Ok(Self {
            reconciles: counters(
                "flexinfer_controller_reconciles_total",
                "Passes over groups, by result.",
                &["result"],
            )?,
            phase: gauges(
                "flexinfer_model_phase",
                "1 for the phase that a model is in.",
                &["model", "namespace", "phase"],
            )?,
            transitions: counters(
                "flexinfer_model_transitions_total",
                "Changes of a model's phase.",
                &["model", "namespace", "from", "to", "reason"],
            )?,
            group_state: gauges(
                "flexinfer_sharedgroup_state",
                "1 for the place that a model has in its group.",
                &["group", "model", "namespace", "state"],
            )?,
            preemptions: counters(
                "flexinfer_sharedgroup_preemptions_total",
                "Swaps of a group's GPU, by who left and who came.",
                &["group", "namespace", "from", "to"],
            )?,
            cold_start: seconds(
                "flexinfer_model_cold_start_duration_seconds",
                "From a pod's making to its readiness.",
                &["model", "namespace", "backend", "cache_strategy"],
            )?,
            swap: seconds(
                "flexinfer_model_swap_duration_seconds",
                "From the decision about a group's GPU until the newcomer serves.",
                &["model", "namespace", "backend", "group"],
            )?,
            preload: gauges(
                "flexinfer_model_preload_active",
                "1 while a model is kept up before its first request.",
                &["model", "namespace"],
            )?,
        })
    }

    pub(crate) fn reconciled(&self, well: bool) {
        let result = if well { "success" } else { "error" };
        self.reconciles.with_label_values(&[result]).inc();
    }

    /// A pass over a member ended; what it is now.
    pub(crate) fn saw(&self, member: &Member, verdict: Option<&Verdict>) {
        let Some(effective) = &member.effective else { return };
        let waits = verdict.is_some_and(|verdict| verdict.activity.last_active.is_none());
        let preloading = effective.preload && waits;
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
        self.preload.with_label_values(&[model, namespace]).set(i64::from(preloading));
        let gone = verdict.is_some_and(|verdict| verdict.standing == Standing::Gone);
        if gone {
            self.forget(member);
        }
    }

    /// A member's status changed to `new`.
    pub(crate) fn changed(&self, member: &Member, new: &ModelStatus, verdict: Option<&Verdict>) {
        let old = member.model.status.as_ref();
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
        for phase in Phase::iter() {
            let labels = [model, namespace, phase.into()];
            self.phase.with_label_values(&labels).set(i64::from(new.phase == Some(phase)));
        }
        let before = old.and_then(|status| status.phase);
        if before != new.phase {
            let name = |phase: Option<Phase>| phase.map_or("", <&str>::from);
            let ready = new.conditions.iter().find(|condition| condition.type_ == "Ready");
            let reason = ready.map_or("", |condition| condition.reason.as_str());
            let labels = [model, namespace, name(before), name(new.phase), reason];
            self.transitions.with_label_values(&labels).inc();
            if new.phase == Some(Phase::Ready) {
                self.loaded(member, new);
                self.swapped(member, new, verdict);
            }
        }
        self.group(member, old, new);
    }

    /// A newcomer serves: how long that took from the decision on, if others had to leave for it.
    fn swapped(&self, member: &Member, status: &ModelStatus, verdict: Option<&Verdict>) {
        let Some(effective) = &member.effective else { return };
        let GroupId::Shared { name, .. } = &effective.group else { return };
        let Some(coming) = verdict.and_then(|verdict| verdict.record.coming) else { return };
        let Some(started) = coming.started.filter(|started| *started > coming.decided) else {
            return;
        };
        let loading = last_load(Some(status)).unwrap_or_default();
        let took = started.since(coming.decided) + loading;
        let labels = [&*member.id.name, &*member.id.namespace, &member.model.spec.backend, &**name];
        self.swap.with_label_values(&labels).observe(took.as_secs_f64());
    }

    fn loaded(&self, member: &Member, status: &ModelStatus) {
        let Some(took) = last_load(Some(status)) else { return };
        let strategy = member.model.spec.cache.as_ref().and_then(|cache| cache.strategy);
        let strategy = strategy.map_or("default".to_owned(), |strategy| format!("{strategy:?}"));
        let labels =
            [&*member.id.name, &*member.id.namespace, &member.model.spec.backend, &*strategy];
        self.cold_start.with_label_values(&labels).observe(Duration::as_secs_f64(&took));
    }

    fn group(&self, member: &Member, old: Option<&ModelStatus>, new: &ModelStatus) {
        let place = new.shared_group.as_ref();
        let Some(group) = place.and_then(|place| place.group_name.as_deref()) else { return };
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
        let state = place.and_then(|place| place.state).map(|state| state.to_string());
        for known in STATES {
            let labels = [group, model, namespace, known];
            let is = state.as_deref() == Some(known);
            self.group_state.with_label_values(&labels).set(i64::from(is));
        }
        let by = |status: &ModelStatus| {
            let place = status.shared_group.as_ref()?;
            Some((place.preempted_by.clone()?, place.preempted_at.clone()))
        };
        let known = old.and_then(by);
        if let Some((winner, _)) = by(new).filter(|swap| known.as_ref() != Some(swap)) {
            self.preemptions.with_label_values(&[group, namespace, model, &winner]).inc();
        }
    }

    /// Ends the series of a model that is gone.
    fn forget(&self, member: &Member) {
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
        for phase in Phase::iter() {
            let _ = self.phase.remove_label_values(&[model, namespace, phase.into()]);
        }
        let _ = self.preload.remove_label_values(&[model, namespace]);
        let group = member.model.spec.gpu.as_ref().and_then(|gpu| gpu.shared.as_deref());
        for state in STATES {
            let labels = [group.unwrap_or_default(), model, namespace, state];
            let _ = self.group_state.remove_label_values(&labels);
        }
    }
}
