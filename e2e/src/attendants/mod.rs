//! What a cluster has beside its control plane: somebody who makes volumes for claims, and somebody who leads
//! Services to their pods. They live on a thread of their own, since a cluster outlives the runtime of the
//! test that started it.

mod services;
mod storage;

pub use storage::storage_class;

use std::io;
use std::path::Path;
use std::thread;

use kube::{Client, Config};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// The attendants of one cluster; they leave with it.
pub(crate) struct Attendants {
    _leave: oneshot::Sender<()>,
}

impl Attendants {
    /// Puts them to work. `folder` is where volumes lie.
    pub(crate) fn start(config: &Config, folder: &Path) -> io::Result<Self> {
        let (leave, left) = oneshot::channel::<()>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (config, folder) = (config.clone(), folder.to_path_buf());
        thread::Builder::new().name("attendants".to_owned()).spawn(move || {
            runtime.block_on(async {
                // A client belongs to the runtime that made it.
                let Ok(client) = Client::try_from(config) else { return };
                tokio::select! {
                    () = storage::attend(&client, &folder) => {}
                    () = services::attend(&client) => {}
                    _ = left => {}
                }
            });
        })?;
        Ok(Self { _leave: leave })
    }
}
