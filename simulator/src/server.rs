//! Starts an engine: opens its port when its settings say so, loads, serves until stopped, and says how
//! it ended. Everything it started ends with it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::{TcpListener, TcpSocket, lookup_host};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{Connection, serve};
use crate::engine::{Engine, Phase};
use crate::faults::{AnswerFaults, DoorWhileLoading};
use crate::loading::load;
use crate::request_log::RecordedRequest;
use crate::settings::Settings;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4_096;

/// Why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The host is no address of this machine.
    #[error("{host} is not an address to listen on; use 127.0.0.1 or 0.0.0.0")]
    Host {
        /// As it was given.
        host: String,
        /// What looking it up said.
        source: io::Error,
    },
    /// The port is taken or may not be used.
    #[error("cannot listen on {address}; choose another port, or 0 for a free one")]
    Bind {
        /// As it was given.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// There is no name to answer to.
    #[error("an engine needs at least one model name")]
    NoModel,
}

/// How an engine ended. An error where the engine was still needed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// It was stopped.
    #[error("the engine was stopped")]
    Stopped,
    /// It died by itself, for this reason.
    #[error("{0}")]
    Died(String),
}

/// Starts engines.
#[derive(Debug)]
pub struct Simulator;

impl Simulator {
    /// Starts an engine in this process. It loads in the background; see [`Running::ready`].
    pub async fn start(settings: Settings) -> Result<Running, StartError> {
        if settings.models.is_empty() {
            return Err(StartError::NoModel);
        }
        let (socket, address) = bind(&settings).await?;
        if settings.announces {
            crate::loading::announce(&format!("listening on http://{address}"));
        }
        let faults = &settings.loading_faults;
        let opens_early = faults.door != DoorWhileLoading::Closed && !faults.port_never_opens;
        let engine = Arc::new(Engine::new(settings));
        let (stop, tasks) = (engine.stop.clone(), TaskTracker::new());
        let mut door = Door { socket: Some(socket), address, tasks: tasks.clone() };
        if opens_early {
            door.open(&engine).map_err(|source| StartError::Bind { address, source })?;
        }
        let ending = watch::Sender::new(None);
        let running = Running {
            addr: address,
            engine: Arc::clone(&engine),
            stop,
            tasks: tasks.clone(),
            ending: ending.subscribe(),
        };
        tasks.spawn(async move {
            let ended = live(&engine, door).await;
            ending.send_replace(Some(ended));
        });
        tasks.close();
        Ok(running)
    }
}

/// A running engine. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// Where it listens, or will once it opens its port.
    pub addr: SocketAddr,
    engine: Arc<Engine>,
    stop: CancellationToken,
    tasks: TaskTracker,
    ending: watch::Receiver<Option<Ending>>,
}

impl Running {
    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Waits until the model is loaded; the reason when the engine ended before.
    pub async fn ready(&self) -> Result<(), Ending> {
        let mut phase = self.engine.phase.subscribe();
        let reached = phase.wait_for(|phase| !matches!(phase, Phase::Loading(_)));
        tokio::select! {
            () = self.stop.cancelled() => Err(self.ended().await),
            phase = reached => match phase.as_deref() {
                Ok(Phase::Ready) => Ok(()),
                Ok(Phase::Dead(reason)) => Err(Ending::Died(reason.clone())),
                Ok(Phase::Loading(_)) | Err(_) => Err(Ending::Stopped),
            },
        }
    }

    /// True once the model is loaded.
    pub fn is_ready(&self) -> bool {
        self.engine.is_ready()
    }

    /// Waits until the engine has ended, and says how.
    pub async fn ended(&self) -> Ending {
        let mut ending = self.ending.clone();
        let ended = ending.wait_for(Option::is_some).await;
        ended.ok().and_then(|ended| ended.clone()).unwrap_or(Ending::Stopped)
    }

    /// Ends the engine at once and waits until its port and connections are closed.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
        self.engine.aside.close();
        self.engine.aside.wait().await;
    }

    /// The requests so far, oldest first; empty when the log is off.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.engine.log.requests()
    }

    /// Requests that generate now.
    pub fn running(&self) -> usize {
        self.engine.slots.running()
    }

    /// Requests that wait for a slot now.
    pub fn waiting(&self) -> usize {
        self.engine.slots.waiting()
    }

    /// Tokens generated so far, by all requests together.
    pub fn generated_tokens(&self) -> u64 {
        self.engine.metrics.generated_tokens()
    }

    /// From now on answers go wrong in this way.
    pub fn set_faults(&self, faults: AnswerFaults) {
        self.engine.set_faults(faults);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn bind(settings: &Settings) -> Result<(TcpSocket, SocketAddr), StartError> {
    let host = || settings.host.clone();
    let mut found = lookup_host((settings.host.as_str(), settings.port))
        .await
        .map_err(|source| StartError::Host { host: host(), source })?;
    let address = found.next().ok_or_else(|| StartError::Host {
        host: host(),
        source: io::ErrorKind::AddrNotAvailable.into(),
    })?;
    // Bound and not yet listening, a port is ours and refuses connections: so it looks closed.
    let bound = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.and_then(
        |socket| {
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        },
    );
    bound.map_err(|source| StartError::Bind { address, source })
}

/// The life of one engine, from loading to its end.
async fn live(engine: &Arc<Engine>, door: Door) -> Ending {
    let ended = tokio::select! {
        () = engine.stop.cancelled() => Ending::Stopped,
        reason = load_and_serve(engine, door) => Ending::Died(reason),
    };
    if let Ending::Died(reason) = &ended {
        engine.phase.send_replace(Phase::Dead(reason.clone()));
    }
    // Ends the connections too.
    engine.stop.cancel();
    ended
}

/// Returns only when the engine dies, with the reason.
async fn load_and_serve(engine: &Arc<Engine>, mut door: Door) -> String {
    if let Err(reason) = load(engine).await {
        return reason;
    }
    let address = door.address;
    if !engine.settings.loading_faults.port_never_opens
        && let Err(error) = door.open(engine)
    {
        return format!("cannot listen on {address}: {error}");
    }
    engine.log.loaded();
    engine.phase.send_replace(Phase::Ready);
    if engine.settings.announces {
        let name = engine.own_name();
        crate::loading::announce(&format!("{name} is ready on http://{address}"));
    }
    std::future::pending().await
}

/// The engine's port: held from the start, opened once.
struct Door {
    socket: Option<TcpSocket>,
    address: SocketAddr,
    tasks: TaskTracker,
}

impl Door {
    /// Opens the port, if it is not open yet.
    fn open(&mut self, engine: &Arc<Engine>) -> io::Result<()> {
        if let Some(socket) = self.socket.take() {
            let listener = socket.listen(BACKLOG)?;
            self.tasks.spawn(accept(listener, Arc::clone(engine), self.tasks.clone()));
        }
        Ok(())
    }
}

async fn accept(listener: TcpListener, engine: Arc<Engine>, tasks: TaskTracker) {
    let stop = engine.stop.clone();
    let numbers = AtomicU64::new(0);
    let router = crate::apis::router(Arc::clone(&engine));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors: wait for some to come back.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let connection = Connection {
            number: numbers.fetch_add(1, Ordering::SeqCst),
            engine: Arc::clone(&engine),
            router: router.clone(),
        };
        let stop = stop.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = serve(connection, stream) => {}
            }
        });
    }
}
