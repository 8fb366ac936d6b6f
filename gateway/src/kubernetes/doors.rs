//! The sockets that a gateway listens at: its predecessor's, or its own.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::Context as _;
use tracing::{error, info};

use crate::server::{self, Estate, Inherited};
use crate::settings::ClusterSettings;

/// The sockets, and whom they come from and go to.
pub(super) struct Doors {
    pub(super) requests: TcpListener,
    pub(super) admin: TcpListener,
    pub(super) succession: Succession,
}

/// Predecessor and successor.
pub(super) struct Succession {
    path: Option<PathBuf>,
    predecessor: Option<Inherited>,
    /// How many gateways were here before.
    pub(super) generation: u8,
    estate: Option<Estate>,
}

impl Doors {
    /// Takes the sockets over from a gateway that waits for its successor, else binds them.
    pub(super) fn open(settings: &ClusterSettings) -> anyhow::Result<Self> {
        let path = settings.upgrade_socket.clone();
        let predecessor = match &path {
            Some(path) => Inherited::ask(path).with_context(|| {
                format!("the gateway that waits at {} handed nothing over", path.display())
            })?,
            None => None,
        };
        let serve = &settings.serve;
        let (requests, admin) = match &predecessor {
            Some(inherited) => {
                info!(generation = inherited.generation, "taking over");
                let cannot = "the sockets that were handed over cannot be used";
                (
                    inherited.requests.try_clone().context(cannot)?,
                    inherited.admin.try_clone().context(cannot)?,
                )
            }
            None => (bind("listen", serve.listen)?, bind("admin-listen", serve.admin_listen)?),
        };
        let generation = predecessor.as_ref().map_or(0, |before| before.generation);
        let estate = match &path {
            Some(path) => Some(
                Estate::new(path, &requests, &admin, generation)
                    .context("the sockets cannot be kept for a successor")?,
            ),
            None => None,
        };
        let succession = Succession { path, predecessor, generation, estate };
        Ok(Self { requests, admin, succession })
    }
}

impl Succession {
    /// This gateway accepts: its predecessor need not any more. Resolves when this gateway need not either.
    pub(super) async fn pass(self) {
        if let Some(predecessor) = self.predecessor
            && let Err(error) = predecessor.release()
        {
            // It serves on beside this one until somebody ends it.
            error!(%error, "the predecessor could not be released");
        }
        if let Some(estate) = self.estate {
            match estate.wait().await {
                Ok(()) => return,
                Err(error) => {
                    let path = self.path.unwrap_or_default();
                    error!(%error, path = %path.display(), "no successor can take over");
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    server::bind(address)
        .with_context(|| format!("cannot listen on {address}; name another address with --{flag}"))
}
