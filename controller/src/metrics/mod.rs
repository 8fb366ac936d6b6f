//! What the controller counts, under the original's names.

mod census;
mod quantizing;

use std::time::Duration;

use flexinfer_core::ids::{GroupId, ModelId};
use flexinfer_core::planning::group::{Standing, Verdict};
use flexinfer_core::planning::status::last_load;
use flexinfer_crds::Model;
use flexinfer_crds::model::{ModelStatus, Phase};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use strum::IntoEnumIterator as _;

use crate::world::Member;

use census::Census;
use quantizing::Quantizing;

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
    census: Census,
    quantizing: Quantizing,
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
            census: Census::new(registry)?,
            quantizing: Quantizing::new(registry)?,
        })
    }

    pub(crate) fn reconciled(&self, well: bool) {
        let result = if well { "success" } else { "error" };
        self.reconciles.with_label_values(&[result]).inc();
    }

    /// What a member is now, by each pass over it.
    pub(crate) fn saw(&self, member: &Member, status: &ModelStatus, verdict: Option<&Verdict>) {
        if verdict.is_some_and(|verdict| verdict.standing == Standing::Gone) {
            return self.forget(&member.id, &member.model);
        }
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
        if let Some(effective) = &member.effective {
            let waits = verdict.is_some_and(|verdict| verdict.activity.last_active.is_none());
            let preloading = effective.preload && waits;
            self.preload.with_label_values(&[model, namespace]).set(i64::from(preloading));
        }
        for phase in Phase::iter() {
            let labels = [model, namespace, phase.into()];
            self.phase.with_label_values(&labels).set(i64::from(status.phase == Some(phase)));
        }
        self.census.count(&member.id, status.phase);
        self.place(member, status);
        self.quantizing.saw(member, status);
    }

    /// A member's status changed to `new`.
    pub(crate) fn changed(&self, member: &Member, new: &ModelStatus, verdict: Option<&Verdict>) {
        let old = member.model.status.as_ref();
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
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
        self.preempted(member, old, new);
        self.quantizing.changed(member, new);
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

    fn place(&self, member: &Member, status: &ModelStatus) {
        let place = status.shared_group.as_ref();
        let Some(group) = place.and_then(|place| place.group_name.as_deref()) else { return };
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
        let state = place.and_then(|place| place.state).map(|state| state.to_string());
        for known in STATES {
            let labels = [group, model, namespace, known];
            let is = state.as_deref() == Some(known);
            self.group_state.with_label_values(&labels).set(i64::from(is));
        }
    }

    fn preempted(&self, member: &Member, old: Option<&ModelStatus>, new: &ModelStatus) {
        let place = new.shared_group.as_ref();
        let Some(group) = place.and_then(|place| place.group_name.as_deref()) else { return };
        let (namespace, model) = (&*member.id.namespace, &*member.id.name);
        let by = |status: &ModelStatus| {
            let place = status.shared_group.as_ref()?;
            Some((place.preempted_by.clone()?, place.preempted_at.clone()))
        };
        let known = old.and_then(by);
        if let Some((winner, _)) = by(new).filter(|swap| known.as_ref() != Some(swap)) {
            self.preemptions.with_label_values(&[group, namespace, model, &winner]).inc();
        }
    }

    /// Ends the series of a model that is gone, and was like this.
    pub(crate) fn forget(&self, id: &ModelId, model: &Model) {
        self.census.count(id, None);
        self.quantizing.forget(id, model);
        for phase in Phase::iter() {
            let labels = [&*id.name, &*id.namespace, phase.into()];
            let _ = self.phase.remove_label_values(&labels);
        }
        let _ = self.preload.remove_label_values(&[&*id.name, &*id.namespace]);
        self.moved(id, model);
    }

    /// Ends the series of a model's place in the group that it was in when it was like this.
    pub(crate) fn moved(&self, id: &ModelId, model: &Model) {
        let group = model.spec.gpu.as_ref().and_then(|gpu| gpu.shared.as_deref());
        for state in STATES {
            let labels = [group.unwrap_or_default(), &*id.name, &*id.namespace, state];
            let _ = self.group_state.remove_label_values(&labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use flexinfer_crds::{Model, ModelSpec};

    use super::*;

    /// The lines of a page of metrics that have a value.
    pub(super) fn page(registry: &Registry) -> Vec<String> {
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn status(phase: Phase) -> ModelStatus {
        ModelStatus { phase: Some(phase), ..ModelStatus::default() }
    }

    #[test]
    fn each_model_is_counted_in_its_phase_from_the_first_pass_on() {
        let registry = Registry::new();
        let metrics = Metrics::new(&registry).unwrap();
        let member = |name| Member::bare("models", Model::new(name, ModelSpec::default()));
        metrics.saw(&member("a"), &status(Phase::Ready), None);
        metrics.saw(&member("b"), &status(Phase::Idle), None);
        metrics.saw(&member("b"), &status(Phase::Ready), None);
        let told = page(&registry);
        let has = |line: &str| told.iter().any(|told| told == line);
        assert!(has("flexinfer_models_total{phase=\"Ready\"} 2"), "{told:#?}");
        assert!(has("flexinfer_models_total{phase=\"Idle\"} 0"), "{told:#?}");
        let ready = "flexinfer_model_phase{model=\"b\",namespace=\"models\",phase=\"Ready\"} 1";
        assert!(has(ready), "{told:#?}");
        let gone = member("a");
        metrics.forget(&gone.id, &gone.model);
        assert!(page(&registry).contains(&"flexinfer_models_total{phase=\"Ready\"} 1".to_owned()));
    }
}
