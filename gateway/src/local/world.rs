//! What a gateway in local mode knows and runs, as it follows from the folder of Models.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use flexinfer_core::activation::Report;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::openai::Liveness;
use flexinfer_core::queueing::Phase;
use flexinfer_telemetry::log;
use flexinfer_telemetry::traces::Tracer;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tracing::warn;

use super::models::Models;
use super::processes::Processes;
use super::teller::Teller;
use super::{Contents, Engines, Lines, Own, Row, status};
use crate::adapters::OnDemand;
use crate::admin::{Guard, Pages};
use crate::labels::Labels;
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::parts::Parts;
use crate::queues::{Budgets, Queues};
use crate::remembered::Remembered;
use crate::replay::Budget;
use crate::rules::Rules;
use crate::settings::{LocalSettings, Settings};

/// What changes with the folder.
pub(super) struct World {
    models: Mutex<Models>,
    /// What was complained about last, so that it is not said again with every change.
    complaints: Mutex<Vec<String>>,
    fleet: Arc<ArcSwap<Fleet>>,
    queues: Arc<Queues>,
    processes: Arc<Processes>,
    metrics: Arc<Metrics>,
    adapters: Arc<OnDemand>,
    rules: Rules,
    budgets: Budgets,
    queue_timeout: Duration,
}

impl World {
    /// A world without models. Its engines are started in `folder`.
    pub(super) fn new(
        folder: &Path,
        settings: &LocalSettings,
        metrics: &Arc<Metrics>,
    ) -> anyhow::Result<Arc<Self>> {
        let rules = Rules::new(&settings.serve.rules)?;
        let fleet: Arc<ArcSwap<Fleet>> = Arc::default();
        let lines = (settings.serve.log_format == log::Format::Text)
            .then(|| Lines::new(std::io::stdout().is_terminal()));
        let teller = Teller::new(lines, Arc::clone(metrics), Arc::clone(&fleet));
        let (reports, reported) = mpsc::unbounded_channel();
        let processes = Processes::new(reports.clone(), teller);
        let orders = Arc::clone(&processes) as _;
        let budgets = settings.vram_budgets.clone();
        let queues = Queues::new(settings.serve.queue, budgets, orders, Handle::current());
        processes.attach(engines(folder, settings, &rules, reports)?);
        let adapters = OnDemand::new(folder, Arc::clone(&rules.secrets));
        let heeding = (Arc::clone(&processes), Arc::clone(&queues), Arc::clone(&adapters));
        tokio::spawn(heed(reported, heeding));
        Ok(Arc::new(Self {
            models: Mutex::default(),
            complaints: Mutex::default(),
            fleet,
            queues,
            processes,
            metrics: Arc::clone(metrics),
            adapters,
            rules,
            budgets: settings.vram_budgets.clone(),
            queue_timeout: settings.serve.queue.queue_timeout,
        }))
    }

    /// Serves what the folder says now.
    pub(super) fn apply(&self, contents: Contents) {
        // Held to the end, so that two changes do not mix.
        let mut models = self.models.lock();
        let mut taken = models.take(contents);
        taken.complaints.extend(self.budgets_of_nobody(&taken.fleet));
        taken.complaints.extend(self.overruled(&taken.fleet));
        let before = std::mem::replace(&mut *self.complaints.lock(), taken.complaints.clone());
        for complaint in taken.complaints.iter().filter(|complaint| !before.contains(complaint)) {
            warn!("{complaint}");
        }
        self.metrics.know(taken.fleet.listed().map(|served| served.name()));
        if let Some(engines) = self.processes.engines() {
            engines.know_adapters(taken.adapters);
        }
        self.processes.know(taken.models);
        let fleet = Arc::new(taken.fleet);
        self.fleet.store(Arc::clone(&fleet));
        self.queues.configure(fleet);
    }

    /// A budget for a group that no Model is in is most likely misspelt.
    fn budgets_of_nobody(&self, fleet: &Fleet) -> Vec<String> {
        let of_nobody = self.budgets.unused(fleet.all().map(|served| &served.effective.group));
        let told = |group| format!("--vram-budget names the group {group}, which no Model is in");
        of_nobody.into_iter().map(told).collect()
    }

    /// Cold-start timeouts that say less than every request waits anyhow.
    fn overruled(&self, fleet: &Fleet) -> Vec<String> {
        let told = |served: &Arc<Served>| {
            let effective = &served.effective;
            effective.cold_start_timeout.filter(|timeout| *timeout < self.queue_timeout)?;
            Some(format!(
                "{}: serverless.coldStartTimeout is shorter than --queue-timeout \
                 (PROXY_QUEUE_TIMEOUT), which counts",
                effective.id
            ))
        };
        fleet.all().filter_map(told).collect()
    }

    /// How many models are offered.
    pub(super) fn offered(&self) -> usize {
        self.fleet.load().listed().count()
    }

    /// The engines' side.
    pub(super) fn processes(&self) -> &Processes {
        &self.processes
    }

    /// What the request path works with.
    pub(super) fn parts(
        self: &Arc<Self>,
        settings: &Settings,
        lifecycle: &Arc<Lifecycle>,
    ) -> Parts {
        let queues = Arc::clone(&self.queues);
        Parts {
            fleet: Arc::clone(&self.fleet),
            dispatch: Arc::new(Arc::clone(&self.queues)),
            liveness: Arc::new(move |served| liveness(&queues, served)),
            labels: Labels::new(settings.label_routing),
            routing: settings.queue.routing,
            remembered: Remembered::default(),
            limits: settings.limits,
            rules: self.rules.clone(),
            budget: Budget::new(settings.max_buffered_bytes, settings.limits.max_body),
            lifecycle: Arc::clone(lifecycle),
            queue: settings.queue,
            adapters: Arc::clone(&self.adapters),
            metrics: Arc::clone(&self.metrics),
            tracer: Tracer::of_this_process(),
        }
    }

    /// What the admin port shows.
    pub(super) fn pages(self: &Arc<Self>, settings: &Settings, lifecycle: Arc<Lifecycle>) -> Pages {
        let (shown, measured) = (Arc::clone(self), Arc::clone(self));
        Pages {
            metrics: Arc::clone(&self.metrics),
            refresh: Arc::new(move || measured.measure()),
            lifecycle,
            settings: Arc::new(settings.shown.clone()),
            models: Arc::new(move || {
                let lines = |id: &_| {
                    shown.processes.engines().map_or_else(Vec::new, |all| all.log_lines(id))
                };
                status::page(&shown.queues, lines)
            }),
            guard: if settings.admin_listen.ip().is_loopback() {
                Guard::Local(settings.rules.hosts.clone().unwrap_or_default())
            } else {
                Guard::Open
            },
        }
    }

    /// Brings the gauges up to date.
    fn measure(&self) {
        let fleet = self.fleet.load();
        for member in self.queues.view().iter().flat_map(|group| &group.members) {
            if let Some(served) = fleet.get(&member.id) {
                let endpoints = usize::from(member.phase == Phase::Ready);
                let active = member.in_flight as usize;
                self.metrics.model(served.name()).set_load(member.waiting, active, endpoints);
            }
        }
    }

    /// The models for the summary at the start.
    pub(super) fn rows(&self) -> Vec<Row> {
        let models = self.models.lock();
        let fleet = self.fleet.load();
        let row = |served: &Arc<Served>| {
            let id = &served.effective.id;
            let phase = self.queues.member(id).map_or(Phase::Idle, |member| member.phase);
            let state = if phase == Phase::Idle {
                "asleep".into()
            } else {
                phase.to_string().to_lowercase()
            };
            Some(Row::new(id, models.get(id)?, state))
        };
        fleet.listed().filter_map(row).collect()
    }
}

fn engines(
    folder: &Path,
    settings: &LocalSettings,
    rules: &Rules,
    reports: mpsc::UnboundedSender<Report>,
) -> anyhow::Result<Engines> {
    let data = &settings.data_dir;
    let unmade =
        || format!("cannot make the data folder {}; name another with --data-dir", data.display());
    std::fs::create_dir_all(data).with_context(unmade)?;
    let data = data.canonicalize().with_context(unmade)?;
    let engines = super::Settings {
        program: std::env::current_exe().context("cannot find this program's own file")?,
        own: Own::claim(&data)?,
        data,
        models: PathBuf::from(folder),
        claims: settings.claims.clone(),
        fetching: settings.fetching.clone(),
        secrets: Arc::clone(&rules.secrets),
    };
    // The channel closes only when the process ends.
    let sink = Arc::new(move |report| drop(reports.send(report)));
    Ok(Engines::new(engines, sink, Handle::current()))
}

/// Passes reports on, one at a time and in their order.
async fn heed(
    mut reports: mpsc::UnboundedReceiver<Report>,
    (processes, queues, adapters): (Arc<Processes>, Arc<Queues>, Arc<OnDemand>),
) {
    while let Some(report) = reports.recv().await {
        if let Report::Ready { address, .. } = &report {
            // Ports are used again: what the one before had loaded there, this one has not.
            adapters.forget_engine(*address);
        }
        processes.heed(&queues, report);
    }
}

fn liveness(queues: &Queues, served: &Served) -> Liveness {
    let member = queues.member(&served.effective.id);
    let phase = member.as_ref().map_or(Phase::Idle, |member| member.phase);
    let load = member.map_or(0, |member| u64::from(member.in_flight) + member.waiting as u64);
    Liveness { ready: phase == Phase::Ready, phase: phase.into(), load }
}
