//! Tells what happens to models: to a person as lines, to a machine as log events, to both as
//! metrics.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use flexinfer_core::activation::{Failure, Progress, Reason, Stage, Substage};
use flexinfer_core::fleet::Fleet;
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_core::queueing::{Notice, SwapWait};
use parking_lot::Mutex;
use tracing::{debug, info, warn};

use super::Lines;
use crate::metrics::{Metrics, ModelSeries};

/// Tells what happens.
pub(crate) struct Teller {
    /// `None` where the log is for machines.
    lines: Option<Mutex<Lines>>,
    metrics: Arc<Metrics>,
    fleet: Arc<ArcSwap<Fleet>>,
}

impl Teller {
    /// Tells in `lines`, or in log events without them.
    pub(crate) fn new(
        lines: Option<Lines>,
        metrics: Arc<Metrics>,
        fleet: Arc<ArcSwap<Fleet>>,
    ) -> Self {
        Self { lines: lines.map(Mutex::new), metrics, fleet }
    }

    /// A decision about a model, or something learnt of it.
    pub(crate) fn notice(&self, model: &ModelId, notice: &Notice) {
        if let Some((series, backend)) = self.series(model) {
            match notice {
                Notice::Waking { swap, .. } => {
                    series.scaled_up();
                    for (phase, took) in swap.iter().flat_map(SwapWait::phases) {
                        series.activation_phase(phase, took);
                    }
                }
                Notice::Ready { took, stages, .. } => {
                    series.activated(&backend, "success", *took);
                    for (stage, took) in stages {
                        series.activation_phase(stage.into(), *took);
                    }
                }
                Notice::Failed { retry_in, retrying: true, .. } => {
                    series.activation_retried(*retry_in);
                }
                _ => {}
            }
        }
        match (&self.lines, notice) {
            (Some(lines), _) => say(&lines.lock().notice(model, notice)),
            (None, notice) => log(model, notice),
        }
    }

    /// How far a load has come.
    pub(crate) fn progress(&self, model: &ModelId, instance: InstanceId, progress: &Progress) {
        if let Some(lines) = &self.lines {
            if let Some(line) = lines.lock().progress(model, instance, progress) {
                say(&line);
            }
        } else {
            let (done, all) = progress.done.unzip();
            debug!(%model, substage = %progress.substage, done, all, detail = progress.message, "loading");
        }
    }

    /// An activation was in `phase` for so long.
    pub(crate) fn phase(&self, model: &ModelId, phase: &'static str, took: Duration) {
        if let Some((series, _)) = self.series(model) {
            series.activation_phase(phase, took);
        }
    }

    /// An engine became ready, or ceased to be.
    pub(crate) fn endpoint(&self, model: &ModelId, ready: bool) {
        if let Some((series, _)) = self.series(model) {
            series.endpoint_changed(ready);
        }
    }

    /// An activation that had come to `substage` and took this long came to nothing.
    pub(crate) fn failed(
        &self,
        model: &ModelId,
        failure: &Failure,
        substage: Substage,
        took: Duration,
    ) {
        if let Some((series, backend)) = self.series(model) {
            series.activated(&backend, failure.reason.into(), took);
            if failure.reason == Reason::LoadTimeout {
                series.load_stalled(substage.into());
            }
        }
    }

    /// A Model has come into the folder, or has gone from it.
    pub(crate) fn listed(&self, model: &ModelId, there: bool) {
        match (&self.lines, there) {
            (Some(lines), _) => say(&lines.lock().listed(model, there)),
            (None, true) => info!(%model, "served"),
            (None, false) => info!(%model, "no longer served"),
        }
    }

    /// A load has ended.
    pub(crate) fn forget(&self, instance: InstanceId) {
        if let Some(lines) = &self.lines {
            lines.lock().forget(instance);
        }
    }

    fn series(&self, model: &ModelId) -> Option<(ModelSeries, String)> {
        let fleet = self.fleet.load();
        let served = fleet.get(model)?;
        Some((self.metrics.model(served.name()), served.backend.clone()))
    }
}

/// The same for machines: one event with fields of its own for each notice.
fn log(model: &ModelId, notice: &Notice) {
    match notice {
        Notice::Waking { waiting, swap } => {
            let seconds = |part: fn(&SwapWait) -> Duration| {
                swap.as_ref().map(|swap| part(swap).as_secs_f64())
            };
            info!(
                %model,
                waiting,
                queued_seconds = seconds(|swap| swap.queued),
                draining_seconds = seconds(|swap| swap.draining),
                stopping_seconds = seconds(|swap| swap.stopping),
                "waking"
            );
        }
        Notice::Swapping { leaving } => info!(%model, %leaving, "swapping"),
        Notice::Draining { in_flight } => info!(%model, in_flight, "draining"),
        Notice::CutOff { in_flight } => warn!(%model, in_flight, "cut off at its drain limit"),
        Notice::Ready { took, waiting, stages } => {
            let spent =
                |(stage, took): &(Stage, Duration)| format!("{stage} {:.3}", took.as_secs_f64());
            let spent: Vec<String> = stages.iter().map(spent).collect();
            let phases = (!spent.is_empty()).then(|| spent.join(", "));
            info!(%model, seconds = took.as_secs_f64(), waiting, phases, "ready");
        }
        Notice::Sleeping { idle } => info!(%model, idle_seconds = idle.as_secs_f64(), "sleeping"),
        Notice::Replaced => info!(%model, "stopping: its file has changed or is gone"),
        Notice::Failed { failure, retry_in, retrying } => {
            let (reason, retry_seconds) = (failure.reason, retry_in.as_secs_f64());
            warn!(%model, %reason, detail = failure.message, retry_seconds, retrying, "failed");
        }
        Notice::Gone => info!(%model, "stopped"),
    }
}

/// Writes a line for people. A terminal that is gone must not end the gateway.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
