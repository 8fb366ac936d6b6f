//! `flexinfer-gateway local DIR`: puts the parts together, and takes them apart in the right order.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use flexinfer_core::activation::Report;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::openai::Liveness;
use flexinfer_core::queueing::Phase;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::models::Models;
use super::processes::{Processes, STOP_GRACE};
use super::teller::Teller;
use super::{Banner, Claim, Contents, Engines, Folder, Lines, Row, status};
use crate::admin::{self, Admin, Pages};
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::parts::Parts;
use crate::proxy::Proxy;
use crate::queues::Queues;
use crate::replay::Budget;
use crate::rules::Rules;
use crate::server::{self, Running};
use crate::settings::{LogFormat, Settings};
use crate::signals::Signals;

/// Serves the Models in `folder` until a signal asks to end.
pub async fn run(folder: &Path, settings: Settings) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let local = Local::start(folder, &settings)?;
    local.greet(&settings);
    signals.next().await;
    local.stop(&settings, signals).await;
    Ok(())
}

/// A gateway in local mode.
struct Local {
    running: Running,
    admin: Admin,
    world: Arc<World>,
    metrics: Arc<Metrics>,
    /// Watched, and claimed, for as long as this lives.
    _folder: Folder,
    _claim: Claim,
}

/// What changes with the folder.
struct World {
    models: Mutex<Models>,
    /// What was complained about last, so that it is not said again with every change.
    complaints: Mutex<Vec<String>>,
    fleet: Arc<ArcSwap<Fleet>>,
    queues: Arc<Queues>,
    processes: Arc<Processes>,
    metrics: Arc<Metrics>,
    rules: Rules,
}

impl Local {
    fn start(folder: &Path, settings: &Settings) -> anyhow::Result<Self> {
        let folder = folder.canonicalize().with_context(|| {
            format!(
                "cannot open the folder of Models {}; make it, or name another",
                folder.display()
            )
        })?;
        let claim = Claim::on(&folder)?;
        let requests =
            server::bind(settings.listen).with_context(|| taken("listen", settings.listen))?;
        let pages = server::bind(settings.admin_listen)
            .with_context(|| taken("admin-listen", settings.admin_listen))?;

        let metrics = Metrics::new().context("cannot set the metrics up")?;
        let world = World::new(&folder, settings, &metrics)?;
        let (changed, mut changes) = mpsc::unbounded_channel();
        // The channel closes only when the process ends.
        let (watch, contents) =
            Folder::watch(&folder, move |contents| drop(changed.send(contents)))?;
        world.apply(contents);
        let watched = Arc::clone(&world);
        tokio::spawn(async move {
            while let Some(contents) = changes.recv().await {
                watched.apply(contents);
            }
        });

        let lifecycle = Lifecycle::new();
        let proxy = Proxy::new(world.parts(settings, &lifecycle));
        let running = server::start(requests, proxy, Arc::clone(&lifecycle), settings.threads)
            .context("cannot serve requests")?;
        let admin = admin::start(pages, world.pages(settings, lifecycle))
            .context("cannot serve the admin port")?;
        Ok(Self { running, admin, world, metrics, _folder: watch, _claim: claim })
    }

    /// Says what is served, to people; to machines, that it is.
    fn greet(&self, settings: &Settings) {
        let (address, admin) = (self.running.address, self.admin.address);
        if settings.log_format == LogFormat::Json {
            info!(%address, %admin, models = self.world.fleet.load().listed().count(), "serving");
            return;
        }
        let banner = Banner {
            address,
            admin,
            rows: self.world.rows(),
            colored: std::io::stdout().is_terminal(),
        };
        // A terminal that is gone must not end the gateway.
        let _ = writeln!(std::io::stdout(), "{banner}");
    }

    /// Finishes what has begun, then ends the engines with patience; a second signal ends both.
    async fn stop(self, settings: &Settings, mut signals: Signals) {
        let began = Instant::now();
        self.metrics.shutdown_started();
        let finished = tokio::select! {
            finished = self.running.stop(settings.patience) => Some(finished),
            () = signals.next() => None,
        };
        self.world.processes.close();
        if let Some(engines) = self.world.processes.engines() {
            let patiently = async {
                match finished {
                    Some(_) => engines.stop_all(STOP_GRACE).await,
                    None => std::future::pending().await,
                }
            };
            let again = async {
                if finished.is_some() {
                    signals.next().await;
                }
            };
            tokio::select! {
                () = patiently => {}
                () = again => {
                    warn!("asked again: ending at once");
                    engines.stop_all(Duration::ZERO).await;
                }
            }
        }
        self.metrics.shutdown_ended(finished == Some(true), began.elapsed());
        info!(took = ?began.elapsed(), "stopped");
    }
}

fn taken(flag: &str, address: std::net::SocketAddr) -> String {
    format!(
        "cannot listen on {address}; is another gateway running? name another address with --{flag}"
    )
}

impl World {
    fn new(
        folder: &Path,
        settings: &Settings,
        metrics: &Arc<Metrics>,
    ) -> anyhow::Result<Arc<Self>> {
        let rules = Rules::new(&settings.rules)?;
        let fleet: Arc<ArcSwap<Fleet>> = Arc::default();
        let lines = (settings.log_format == LogFormat::Text)
            .then(|| Lines::new(std::io::stdout().is_terminal()));
        let teller = Teller::new(lines, Arc::clone(metrics), Arc::clone(&fleet));
        let (reports, reported) = mpsc::unbounded_channel();
        let processes = Processes::new(reports.clone(), teller);
        let orders = Arc::clone(&processes) as _;
        let budgets = settings.vram_budgets.clone();
        let queues = Queues::new(settings.queue, budgets, orders, Handle::current());
        processes.attach(engines(folder, settings, reports)?);
        tokio::spawn(heed(reported, Arc::clone(&processes), Arc::clone(&queues)));
        Ok(Arc::new(Self {
            models: Mutex::default(),
            complaints: Mutex::default(),
            fleet,
            queues,
            processes,
            metrics: Arc::clone(metrics),
            rules,
        }))
    }

    /// Serves what the folder says now.
    fn apply(&self, contents: Contents) {
        // Held to the end, so that two changes do not mix.
        let mut models = self.models.lock();
        let taken = models.take(contents);
        let before = std::mem::replace(&mut *self.complaints.lock(), taken.complaints.clone());
        for complaint in taken.complaints.iter().filter(|complaint| !before.contains(complaint)) {
            warn!("{complaint}");
        }
        self.metrics.know(taken.fleet.listed().map(|served| served.name()));
        self.processes.know(taken.models);
        let fleet = Arc::new(taken.fleet);
        self.fleet.store(Arc::clone(&fleet));
        self.queues.configure(fleet);
    }

    fn parts(self: &Arc<Self>, settings: &Settings, lifecycle: &Arc<Lifecycle>) -> Parts {
        let queues = Arc::clone(&self.queues);
        Parts {
            fleet: Arc::clone(&self.fleet),
            dispatch: Arc::new(Arc::clone(&self.queues)),
            liveness: Arc::new(move |served| liveness(&queues, served)),
            limits: settings.limits,
            rules: self.rules.clone(),
            budget: Budget::new(settings.max_buffered_bytes),
            lifecycle: Arc::clone(lifecycle),
            metrics: Arc::clone(&self.metrics),
        }
    }

    fn pages(self: &Arc<Self>, settings: &Settings, lifecycle: Arc<Lifecycle>) -> Pages {
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

    fn rows(&self) -> Vec<Row> {
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
    settings: &Settings,
    reports: mpsc::UnboundedSender<Report>,
) -> anyhow::Result<Engines> {
    let data = &settings.data_dir;
    let unmade =
        || format!("cannot make the data folder {}; name another with --data-dir", data.display());
    std::fs::create_dir_all(data).with_context(unmade)?;
    let engines = super::Settings {
        program: std::env::current_exe().context("cannot find this program's own file")?,
        data: data.canonicalize().with_context(unmade)?,
        models: PathBuf::from(folder),
        claims: settings.claims.clone(),
        fetching: settings.fetching.clone(),
    };
    // The channel closes only when the process ends.
    let sink = Arc::new(move |report| drop(reports.send(report)));
    Ok(Engines::new(engines, sink, Handle::current()))
}

/// Passes reports on, one at a time and in their order.
async fn heed(
    mut reports: mpsc::UnboundedReceiver<Report>,
    processes: Arc<Processes>,
    queues: Arc<Queues>,
) {
    while let Some(report) = reports.recv().await {
        processes.heed(&queues, report);
    }
}

fn liveness(queues: &Queues, served: &Served) -> Liveness {
    let phase = queues.member(&served.effective.id).map_or(Phase::Idle, |member| member.phase);
    Liveness { ready: phase == Phase::Ready, phase: phase.into() }
}
