//! Tells what happens to models: to a person as lines, to a machine as log events, to both as
//! metrics.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use flexinfer_core::activation::{Failure, Progress};
use flexinfer_core::fleet::Fleet;
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_core::queueing::Notice;
use parking_lot::Mutex;
use tracing::{info, warn};

use super::Lines;
use crate::metrics::{Metrics, ModelSeries};

/// Tells what happens.
pub(super) struct Teller {
    /// `None` where the log is for machines.
    lines: Option<Mutex<Lines>>,
    metrics: Arc<Metrics>,
    fleet: Arc<ArcSwap<Fleet>>,
}

impl Teller {
    /// Tells in `lines`, or in log events without them.
    pub(super) fn new(
        lines: Option<Lines>,
        metrics: Arc<Metrics>,
        fleet: Arc<ArcSwap<Fleet>>,
    ) -> Self {
        Self { lines: lines.map(Mutex::new), metrics, fleet }
    }

    /// A decision about a model, or something learnt of it.
    pub(super) fn notice(&self, model: &ModelId, notice: &Notice) {
        if let Some((series, backend)) = self.series(model) {
            match notice {
                Notice::Waking { .. } => series.scaled_up(),
                Notice::Ready { took, .. } => series.activated(&backend, "success", *took),
                _ => {}
            }
        }
        match (&self.lines, notice) {
            (Some(lines), _) => say(&lines.lock().notice(model, notice)),
            (None, Notice::Failed { failure, retry_in }) => {
                warn!(%model, reason = %failure.reason, message = failure.message, ?retry_in, "model failed");
            }
            (None, notice) => info!(%model, ?notice, "model"),
        }
    }

    /// How far a load has come.
    pub(super) fn progress(&self, model: &ModelId, instance: InstanceId, progress: &Progress) {
        match &self.lines {
            Some(lines) => {
                if let Some(line) = lines.lock().progress(model, instance, progress) {
                    say(&line);
                }
            }
            None => {
                info!(%model, substage = %progress.substage, done = ?progress.done, message = progress.message, "loading");
            }
        }
    }

    /// An activation that took this long came to nothing, or an engine has crashed.
    pub(super) fn failed(&self, model: &ModelId, failure: &Failure, took: Duration) {
        if let Some((series, backend)) = self.series(model) {
            series.activated(&backend, failure.reason.into(), took);
        }
    }

    /// A load has ended.
    pub(super) fn forget(&self, instance: InstanceId) {
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

/// Writes a line for people. A terminal that is gone must not end the gateway.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
