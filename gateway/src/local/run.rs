//! `flexinfer-gateway local DIR`: puts the parts together, and takes them apart in the right order.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use flexinfer_telemetry::log;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::processes::STOP_GRACE;
use super::world::World;
use super::{Banner, Claim, Folder};
use crate::admin::{self, Admin};
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::proxy::Proxy;
use crate::server::{self, Entrance, Running};
use crate::settings::{LocalSettings, Settings};
use crate::signals::Signals;
use crate::tls::Certificates;

/// Serves the Models in `folder` until a signal asks to end.
pub async fn run(folder: &Path, settings: LocalSettings) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let local = Local::start(folder, &settings)?;
    local.greet(&settings.serve);
    signals.next().await;
    local.stop(&settings.serve, signals).await;
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

impl Local {
    fn start(folder: &Path, settings: &LocalSettings) -> anyhow::Result<Self> {
        let serve = &settings.serve;
        let folder = folder.canonicalize().with_context(|| {
            format!(
                "cannot open the folder of Models {}; make it, or name another",
                folder.display()
            )
        })?;
        let claim = Claim::on(&folder)?;
        let requests = server::bind(serve.listen).with_context(|| taken("listen", serve.listen))?;
        let pages = server::bind(serve.admin_listen)
            .with_context(|| taken("admin-listen", serve.admin_listen))?;

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
        let proxy = Proxy::new(world.parts(serve, &lifecycle));
        let certificates =
            serve.tls.as_ref().map(|files| Certificates::follow(files, &metrics)).transpose()?;
        let entrance = Entrance { listener: requests, certificates };
        let running = server::start(entrance, proxy, Arc::clone(&lifecycle), serve.threads)
            .context("cannot serve requests")?;
        let admin = admin::start(pages, world.pages(serve, lifecycle))
            .context("cannot serve the admin port")?;
        Ok(Self { running, admin, world, metrics, _folder: watch, _claim: claim })
    }

    /// Says what is served, to people; to machines, that it is.
    fn greet(&self, settings: &Settings) {
        let (address, admin) = (self.running.address, self.admin.address);
        if settings.log_format == log::Format::Json {
            info!(%address, %admin, models = self.world.offered(), "serving");
            return;
        }
        let banner = Banner {
            address,
            secured: settings.tls.is_some(),
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
        self.world.processes().close();
        if let Some(engines) = self.world.processes().engines() {
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
