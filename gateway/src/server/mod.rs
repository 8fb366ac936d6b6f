//! Runs the proxy on a listening socket, in whatever tokio runtime it is called from.
//!
//! Pingora's own `Server` forks, reads a command line, owns signals and runtimes and closes its listeners
//! the moment it is told to stop. Here the process is ours: a gateway is a value that several of can live
//! in one process (tests do that, on port 0), and it stops in the order that [`Running::stop`] tells.

mod authorities;
mod coalesced;
mod connection;
mod conversation;
mod handover;
mod hang_up;
mod head_watch;
mod lanes;
mod listener;
mod refusals;
mod secured;
mod together;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pingora_core::apps::{HttpServerApp, HttpServerOptions};
use pingora_core::server::configuration::ServerConf;
use pingora_proxy::{HttpProxy, ProxyHttp, http_proxy};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::lifecycle::{Lifecycle, Phase};
use crate::tls::Certificates;

pub(crate) use authorities::Authorities;
use connection::Service;
pub(crate) use conversation::{Held, head_arrived, hold};
pub use handover::{Estate, Inherited};
pub(crate) use hang_up::Line;
use lanes::Lane;
pub(crate) use listener::ALIVE;
pub use listener::bind;

/// Idle connections to engines kept for the next request by all lanes together, and as many beside them for
/// what is on no lane.
const POOLED_CONNECTIONS: usize = 1024;

/// The fewest that a lane may keep, however many lanes there are.
const LANE_POOLED_CONNECTIONS: usize = 64;

/// Pingora's own bound on attempts, above every bound of ours: a busy engine may be asked often.
const PINGORA_ATTEMPTS: usize = 10_000;

/// A gateway that answers requests.
pub struct Running {
    /// Where it listens; tells the port where 0 was asked for.
    pub address: SocketAddr,
    lifecycle: Arc<Lifecycle>,
    /// Whether connections that wait for their next request are closed.
    stop: watch::Sender<bool>,
    /// Whether no more connections are accepted.
    full: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    /// The tasks of all connections.
    connections: TaskTracker,
    /// Their threads end with this.
    _lanes: Vec<lanes::Thread>,
}

/// How patiently a gateway stops.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long it still takes requests after its readiness is off, so that load balancers notice.
    pub drain_delay: Duration,
    /// How long requests in flight may take after that.
    pub in_flight: Duration,
    /// How long connections that have not sent their first request may take for it then, to be told that they
    /// came too late.
    pub first_request: Duration,
}

/// Where requests come in.
pub struct Entrance {
    /// The socket.
    pub listener: std::net::TcpListener,
    /// What connections are secured with; without it they are plain.
    pub certificates: Option<Arc<Certificates>>,
}

/// Serves `service` at `entrance`, on so many `lanes` and on the threads of the runtime that this is called in, of
/// which at most so many make connections to engines. Without lanes everything is on those.
pub fn start<S>(
    entrance: Entrance,
    service: S,
    lifecycle: Arc<Lifecycle>,
    lanes: usize,
) -> io::Result<Running>
where
    S: ProxyHttp + Clone + Send + Sync + 'static,
    S::CTX: Send + Sync,
{
    let Entrance { listener, certificates } = entrance;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    let pooled = (POOLED_CONNECTIONS / lanes.max(1)).max(LANE_POOLED_CONNECTIONS);
    let lane = |number| Lane::start(number, Arc::new(proxy(service.clone(), 1, pooled)));
    let started = (0..lanes).map(lane).collect::<io::Result<Vec<_>>>()?;
    let app = Arc::new(proxy(service, lanes, POOLED_CONNECTIONS));
    let (lanes, running): (Vec<_>, _) = started.into_iter().unzip();
    let (stop, stopping) = watch::channel(false);
    let (full, enough) = watch::channel(false);
    let connections = TaskTracker::new();
    let tracked = connections.clone();
    let accepting = tokio::spawn(async move {
        let mut ending = stopping.clone();
        let runtime = Handle::current();
        let connections = tracked;
        let service =
            Arc::new(Service { lanes, app, runtime, certificates, stopping, connections });
        connection::accept(listener, Arc::clone(&service), enough).await;
        // Connections that wait for their next request are told that there is none.
        let _ = ending.wait_for(|stop| *stop).await;
        for app in service.lanes.iter().map(|lane| &lane.app).chain([&service.app]) {
            app.http_cleanup().await;
        }
    });
    Ok(Running { address, lifecycle, stop, full, accepting, connections, _lanes: running })
}

fn proxy<S: ProxyHttp>(service: S, threads: usize, pooled: usize) -> HttpProxy<S> {
    let conf = ServerConf {
        threads: threads.max(1),
        // Each way to an engine brings the authorities that count there; the system's, which Pingora would read for
        // every lane, it does not start with if one of them is unreadable.
        ca_file: Some("/dev/null".to_owned()),
        max_retries: PINGORA_ATTEMPTS,
        upstream_keepalive_pool_size: pooled,
        ..ServerConf::default()
    };
    let mut proxy = http_proxy(&Arc::new(conf), service);
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    options.h2_idle_timeout = Some(connection::KEEPALIVE);
    proxy.server_options = Some(options);
    proxy
}

impl Running {
    /// Turns readiness off, waits the drain delay, stops accepting, and waits for what is in flight.
    /// False when that took longer than it may.
    pub async fn stop(self, patience: Patience) -> bool {
        self.lifecycle.advance(Phase::Draining);
        self.wind_up(patience).await
    }

    /// The same for a gateway whose successor accepts already: accepts nothing from the first moment on.
    /// For the drain delay, connections that were kept are still served, and told to come anew.
    pub async fn hand_over(self, patience: Patience) -> bool {
        self.lifecycle.advance(Phase::Draining);
        self.full.send_replace(true);
        self.wind_up(patience).await
    }

    async fn wind_up(self, patience: Patience) -> bool {
        if !patience.drain_delay.is_zero() {
            info!(delay = ?patience.drain_delay, "not ready any more; still taking requests");
            tokio::time::sleep(patience.drain_delay).await;
        }
        self.lifecycle.advance(Phase::Closed);
        // In this order: who had connected before is still accepted.
        self.stop.send_replace(true);
        self.full.send_replace(true);
        if let Err(error) = self.accepting.await {
            warn!(%error, "the accept loop ended badly");
        }
        let in_flight = self.lifecycle.in_flight();
        info!(in_flight, limit = ?patience.in_flight, "not accepting any more; finishing what has begun");
        self.connections.close();
        let begun = Instant::now();
        if !self.lifecycle.idle(patience.in_flight).await {
            return false;
        }
        let patience_left = |whole: Duration| whole.saturating_sub(begun.elapsed());
        // Those that were kept are closed already.
        let _ = timeout(patience_left(patience.first_request), self.connections.wait()).await;
        self.lifecycle.idle(patience_left(patience.in_flight)).await
    }
}
