//! The local platform as the queues see it: their orders go to engines, what happens is told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use flexinfer_core::activation::{Failure, Reason, Report, Substage};
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_core::queueing::Notice;
use flexinfer_crds::Model;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Engines;
use super::teller::Teller;
use crate::queues::{Platform, Queues};

/// How long an engine may take to end by itself, before it is killed.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(10);

/// Starts and stops engines as processes.
pub(super) struct Processes {
    engines: OnceLock<Engines>,
    models: Mutex<Option<HashMap<ModelId, Arc<Model>>>>,
    loading: Mutex<HashMap<InstanceId, Load>>,
    ready: Mutex<HashMap<InstanceId, ModelId>>,
    /// Set once the process ends: nothing is started any more.
    closing: AtomicBool,
    reports: mpsc::UnboundedSender<Report>,
    teller: Teller,
}

impl Processes {
    /// A platform that reports to `reports`. Its engines come with [`Processes::attach`].
    pub(super) fn new(reports: mpsc::UnboundedSender<Report>, teller: Teller) -> Arc<Self> {
        Arc::new(Self {
            engines: OnceLock::new(),
            models: Mutex::default(),
            loading: Mutex::default(),
            ready: Mutex::default(),
            closing: AtomicBool::new(false),
            reports,
            teller,
        })
    }

    /// The engines that orders go to from now on.
    pub(super) fn attach(&self, engines: Engines) {
        // Set once, at the start; a second call would change nothing.
        drop(self.engines.set(engines));
    }

    /// The Models to start engines for are now these. After the first time, who comes and goes is
    /// told.
    pub(super) fn know(&self, models: HashMap<ModelId, Arc<Model>>) {
        let mut known = self.models.lock();
        if let Some(before) = &*known {
            let came = models.keys().filter(|id| !before.contains_key(id)).map(|id| (id, true));
            let went = before.keys().filter(|id| !models.contains_key(id)).map(|id| (id, false));
            for (id, there) in came.chain(went) {
                self.teller.listed(id, there);
            }
        }
        *known = Some(models);
    }

    /// Starts nothing any more: the process is about to end its engines.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// The engines, once attached.
    pub(super) fn engines(&self) -> Option<&Engines> {
        self.engines.get()
    }

    /// Passes one report on to `queues`, and tells people and metrics what is in it.
    pub(super) fn heed(&self, queues: &Queues, report: Report) {
        match &report {
            Report::Progress { instance, progress } => {
                if let Some(load) = self.loading.lock().get_mut(instance) {
                    if load.substage != progress.substage {
                        self.teller.phase(&load.model, load.substage.into(), load.since.elapsed());
                        (load.substage, load.since) = (progress.substage, Instant::now());
                    }
                    self.teller.progress(&load.model, *instance, progress);
                }
            }
            Report::Ready { instance, .. } => {
                self.teller.forget(*instance);
                if let Some(load) = self.loading.lock().remove(instance) {
                    self.teller.phase(&load.model, load.substage.into(), load.since.elapsed());
                    self.teller.endpoint(&load.model, true);
                    self.ready.lock().insert(*instance, load.model);
                }
            }
            Report::Failed { instance, failure } => {
                if let Some(load) = self.loading.lock().remove(instance) {
                    self.teller.failed(&load.model, failure, load.substage, load.began.elapsed());
                }
                self.ended(*instance);
            }
            Report::Gone { instance } => {
                self.loading.lock().remove(instance);
                self.ended(*instance);
            }
        }
        queues.report(report);
    }

    fn ended(&self, instance: InstanceId) {
        self.teller.forget(instance);
        if let Some(model) = self.ready.lock().remove(&instance) {
            self.teller.endpoint(&model, false);
        }
    }
}

/// A load under way.
struct Load {
    model: ModelId,
    began: Instant,
    substage: Substage,
    /// When it came to its substage.
    since: Instant,
}

impl Platform for Processes {
    fn start(&self, instance: InstanceId, model: &ModelId) {
        if self.closing.load(Ordering::Relaxed) {
            return;
        }
        let known =
            self.models.lock().as_ref().and_then(|models| models.get(model)).map(Arc::clone);
        let (Some(engines), Some(known)) = (self.engines.get(), known) else {
            // Removed between the decision and now; the queues are about to hear of it.
            let failure = Failure::new(Reason::InvalidConfig, "its file has just been removed");
            drop(self.reports.send(Report::Failed { instance, failure }));
            return;
        };
        let (model, substage) = (model.clone(), Substage::LoadingWeights);
        let began = Instant::now();
        let load = Load { model, began, substage, since: began };
        self.loading.lock().insert(instance, load);
        engines.start(instance, known);
    }

    fn stop(&self, instance: InstanceId, _model: &ModelId) {
        if let Some(engines) = self.engines.get() {
            engines.stop(instance, STOP_GRACE);
        }
    }

    fn tell(&self, model: &ModelId, notice: &Notice) {
        self.teller.notice(model, notice);
    }
}
