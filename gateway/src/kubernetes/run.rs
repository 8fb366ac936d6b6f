//! `flexinfer-gateway kubernetes`: puts the parts together, and takes them apart in the right order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::openai::Liveness;
use flexinfer_crds::model::Phase;
use flexinfer_telemetry::traces::Tracer;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::connection::Connection;
use super::doors::Doors;
use super::observer::{self, Observer};
use super::orders::{Dossiers, Hands};
use super::pools::Pools;
use super::probing::Prober;
use super::reporting::Reporter;
use super::{status, watching};
use crate::adapters::OnDemand;
use crate::admin::{self, Admin, Guard, Pages};
use crate::keys::Keys;
use crate::labels::Labels;
use crate::lifecycle::{self, Lifecycle};
use crate::local::Teller;
use crate::metrics::Metrics;
use crate::parts::Parts;
use crate::proxy::Proxy;
use crate::remembered::Remembered;
use crate::replay::Budget;
use crate::rules::Rules;
use crate::secrets::Secrets;
use crate::server::{self, Entrance, Running};
use crate::settings::{ClusterSettings, Settings};
use crate::signals::Signals;
use crate::tls::Certificates;

/// How long the last words to the API server may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves the Models of a cluster until a signal asks to end, or a successor has taken over.
pub async fn run(mut settings: ClusterSettings) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let Doors { requests, admin, succession } = Doors::open(&settings)?;
    if succession.generation > 0 {
        // Both report for a while, each its own requests.
        settings.name = format!("{}.{}", settings.name, succession.generation);
    }
    let serve = &settings.serve;

    let metrics = Metrics::new().context("cannot set the metrics up")?;
    let rules = Rules::new(&serve.rules)?;
    let certificates =
        serve.tls.as_ref().map(|files| Certificates::follow(files, &metrics)).transpose()?;
    let connection = Connection::open().await?;
    let secrets = Arc::clone(&rules.secrets);
    let mut cluster = Cluster::start(&settings, &connection, secrets, &metrics);
    let lifecycle = Lifecycle::starting();
    let shown = cluster.pages(serve, rules.keys.clone(), &lifecycle, &metrics);
    let show = || admin::start(admin, shown).context("cannot serve the admin port");
    // While there is a predecessor, its pages are true and these are not yet.
    let (early, show) =
        if succession.generation == 0 { (Some(show()?), None) } else { (None, Some(show)) };
    info!(gateway = settings.name, "asking the cluster what there is");
    tokio::select! {
        known = cluster.ready.wait_for(|ready| *ready) => drop(known.context("the watches ended")?),
        () = signals.next() => return Ok(()),
    }

    lifecycle.advance(lifecycle::Phase::Serving);
    let parts = cluster.parts(serve, rules, &lifecycle, &metrics);
    let entrance = Entrance { listener: requests, certificates };
    let running = server::start(entrance, Proxy::new(parts), Arc::clone(&lifecycle), serve.threads)
        .context("cannot serve requests")?;
    let admin = match (early, show) {
        (Some(admin), _) => admin,
        (None, show) => show.context("the admin port was opened already")?()?,
    };
    info!(address = %running.address, admin = %admin.address, models = cluster.offered(), "serving");
    let succeeded = tokio::select! {
        () = succession.pass() => true,
        () = signals.next() => false,
    };

    let began = Instant::now();
    metrics.shutdown_started();
    let finished = tokio::select! {
        finished = finish(running, admin, succeeded, serve) => finished,
        () = signals.next() => {
            warn!("asked again: ending at once");
            false
        }
    };
    cluster.say_goodbye().await;
    metrics.shutdown_ended(finished, began.elapsed());
    info!(took = ?began.elapsed(), "stopped");
    Ok(())
}

/// Finishes what has begun. Whether that was possible in time.
async fn finish(running: Running, admin: Admin, succeeded: bool, settings: &Settings) -> bool {
    if succeeded {
        info!("a successor accepts; finishing what has begun");
        // Its pages are the ones to be asked now.
        drop(admin);
        return running.hand_over(settings.patience).await;
    }
    running.stop(settings.patience).await
}

/// What follows from the cluster.
struct Cluster {
    fleet: Arc<ArcSwap<Fleet>>,
    pools: Arc<Pools>,
    dossiers: Dossiers,
    adapters: Arc<OnDemand>,
    reporter: Arc<Reporter>,
    complaints: Arc<Mutex<Vec<(String, String)>>>,
    ready: watch::Receiver<bool>,
    runtime: Handle,
}

impl Cluster {
    /// Begins to watch, in the connection's runtime.
    fn start(
        settings: &ClusterSettings,
        connection: &Connection,
        secrets: Arc<Secrets>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let runtime = connection.runtime();
        let client = connection.client.clone();
        let fleet: Arc<ArcSwap<Fleet>> = Arc::default();
        let dossiers = Dossiers::default();
        let complaints = Arc::default();
        let (orders, ordered) = mpsc::unbounded_channel();
        // Requests' own timers run where requests do.
        let pools = Pools::new(settings.serve.queue, orders, Handle::current());
        let reporter = Reporter::new(client.clone(), &settings.name);
        let adapters = OnDemand::new(super::adapters::MODELS, Arc::clone(&secrets));
        let (known, equipped) = (Arc::clone(&dossiers), Arc::clone(&adapters));
        let hands = Hands {
            pools: Arc::clone(&pools),
            dossiers: Arc::clone(&dossiers),
            prober: Prober::new(&pools, secrets, known, equipped, Handle::current()),
            reporter: Arc::clone(&reporter),
            teller: Teller::new(None, Arc::clone(metrics), Arc::clone(&fleet)),
        };
        runtime.spawn(hands.carry_out(ordered));

        let (news, told) = mpsc::channel(watching::BACKLOG);
        let (complete, ready) = watch::channel(false);
        let watches = {
            let _inside = runtime.enter();
            watching::start(&client, &settings.scope, &news)
        };
        let served = observer::Served {
            fleet: Arc::clone(&fleet),
            pools: Arc::clone(&pools),
            dossiers: Arc::clone(&dossiers),
            adapters: Arc::clone(&adapters),
            metrics: Arc::clone(metrics),
            complaints: Arc::clone(&complaints),
        };
        runtime.spawn(Observer::new(served, watches, complete).observe(told));
        Self { fleet, pools, dossiers, adapters, reporter, complaints, ready, runtime }
    }

    /// What the request path works with.
    fn parts(
        &self,
        settings: &Settings,
        rules: Rules,
        lifecycle: &Arc<Lifecycle>,
        metrics: &Arc<Metrics>,
    ) -> Parts {
        let pools = Arc::clone(&self.pools);
        Parts {
            fleet: Arc::clone(&self.fleet),
            dispatch: Arc::new(Arc::clone(&self.pools)),
            liveness: Arc::new(move |served| liveness(&pools, served)),
            labels: Labels::new(settings.label_routing),
            routing: settings.queue.routing,
            remembered: Remembered::default(),
            limits: settings.limits,
            rules,
            budget: Budget::new(settings.max_buffered_bytes, settings.limits.max_body),
            lifecycle: Arc::clone(lifecycle),
            queue: settings.queue,
            adapters: Arc::clone(&self.adapters),
            metrics: Arc::clone(metrics),
            tracer: Tracer::of_this_process(),
        }
    }

    /// What the admin port shows.
    fn pages(
        &self,
        settings: &Settings,
        keys: Option<Arc<Keys>>,
        lifecycle: &Arc<Lifecycle>,
        metrics: &Arc<Metrics>,
    ) -> Pages {
        let (measured, fleet) = (Arc::clone(&self.pools), Arc::clone(&self.fleet));
        let (shown, complaints) = (Arc::clone(&self.pools), Arc::clone(&self.complaints));
        let series = Arc::clone(metrics);
        Pages {
            metrics: Arc::clone(metrics),
            refresh: Arc::new(move || measure(&measured, &fleet.load(), &series)),
            lifecycle: Arc::clone(lifecycle),
            settings: Arc::new(settings.shown.clone()),
            models: Arc::new(move || status::page(&shown, &complaints.lock())),
            guard: if settings.admin_listen.ip().is_loopback() {
                Guard::Local(settings.rules.hosts.clone().unwrap_or_default())
            } else {
                Guard::Keyed(keys)
            },
        }
    }

    /// How many models are offered.
    fn offered(&self) -> usize {
        self.fleet.load().listed().count()
    }

    /// Takes back what this gateway said of models that it had requests for: an entry that nobody renews
    /// would count until it expires.
    async fn say_goodbye(&self) {
        let views = self.pools.views();
        let used = views.into_iter().filter(|view| view.last_active.is_some());
        let farewells = used.filter_map(|view| {
            let known = self.dossiers.lock().get(&view.id)?.last_active;
            let quiet = self.pools.clock().now().since(view.last_active?);
            let last_active = known.max(Timestamp::now().checked_sub(quiet).ok());
            let reporter = Arc::clone(&self.reporter);
            Some(self.runtime.spawn(async move { reporter.withdraw(&view.id, last_active).await }))
        });
        let all = futures::future::join_all(farewells.collect::<Vec<_>>());
        if tokio::time::timeout(FAREWELL, all).await.is_err() {
            warn!("the API server did not listen to the last words; they expire by themselves");
        }
    }
}

/// Brings the gauges up to date.
fn measure(pools: &Pools, fleet: &Fleet, metrics: &Metrics) {
    for view in pools.views() {
        if let Some(served) = fleet.get(&view.id) {
            metrics.model(served.name()).set_load(view.waiting, view.in_flight, view.open());
        }
    }
}

fn liveness(pools: &Pools, served: &Served) -> Liveness {
    let Some(view) = pools.view(&served.effective.id) else {
        return Liveness { ready: false, phase: Phase::Idle.into(), load: 0 };
    };
    let phase = view.phase.unwrap_or(Phase::Idle).into();
    Liveness { ready: view.ready(), phase, load: (view.in_flight + view.waiting) as u64 }
}
