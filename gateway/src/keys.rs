//! Who has a key, read from a file that is watched: a change counts at once, and a file with a fault
//! never replaces one without. The keys themselves are not in the file, only their digests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use flexinfer_core::callers::{self, Callers};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::followed::{Followed, Unreadable};

/// Why a gateway cannot start with its keys file.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The file cannot be read.
    #[error("cannot read the keys file {}; make it, or name another with --keys-file", .0.display())]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// The file has faults.
    #[error("the keys file has faults:\n{}", .0.join("\n"))]
    Faulty(Vec<String>),
}

/// The callers that count now.
pub struct Keys {
    callers: Arc<ArcSwap<Callers>>,
    /// Reads the file again; nothing where there is none.
    watching: Option<Watching>,
}

struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Keys {
    /// Callers that never change.
    pub fn fixed(callers: Callers) -> Arc<Self> {
        Arc::new(Self { callers: Arc::new(ArcSwap::from_pointee(callers)), watching: None })
    }

    /// The callers of the file at `path`, and `others` beside them whatever it says. Must be called
    /// in a tokio runtime, where the file is watched until this is dropped.
    pub fn watch(path: &Path, others: Callers) -> Result<Arc<Self>, KeysError> {
        let followed = Followed::open([path.to_owned()])
            .map_err(|Unreadable { path, source }| KeysError::Unreadable(path, source))?;
        let [bytes] = followed.contents();
        let first = understand(path, bytes).map_err(KeysError::Faulty)?;
        let callers = Arc::new(ArcSwap::from_pointee(first.with(&others)));
        let file = File { path: path.to_owned(), others, callers: Arc::clone(&callers) };
        let watching = Some(Watching(tokio::spawn(file.follow(followed))));
        Ok(Arc::new(Self { callers, watching }))
    }

    /// The callers that count now.
    pub(crate) fn current(&self) -> Guard<Arc<Callers>> {
        self.callers.load()
    }

    /// Whether a file is followed.
    pub fn watched(&self) -> bool {
        self.watching.is_some()
    }
}

fn understand(path: &Path, bytes: &[u8]) -> Result<Callers, Vec<String>> {
    let parsed = callers::parse(&path.display().to_string(), bytes);
    if parsed.errors.is_empty() {
        return Ok(parsed.callers);
    }
    Err(parsed.errors.iter().map(ToString::to_string).collect())
}

struct File {
    path: PathBuf,
    others: Callers,
    callers: Arc<ArcSwap<Callers>>,
}

impl File {
    async fn follow(self, mut followed: Followed<1>) {
        loop {
            match followed.changed().await {
                Ok(()) => {
                    let [bytes] = followed.contents();
                    self.take(bytes);
                }
                Err(Unreadable { source, .. }) => {
                    warn!(error = %source, "the keys file cannot be read; the keys stay as they were");
                }
            }
        }
    }

    fn take(&self, bytes: &[u8]) {
        match understand(&self.path, bytes) {
            Ok(callers) => {
                info!(keys = callers.keys(), "the keys file has changed");
                self.callers.store(Arc::new(callers.with(&self.others)));
            }
            Err(complaints) => {
                for complaint in complaints {
                    warn!("{complaint}");
                }
                warn!("until the keys file is mended, the keys stay as they were");
            }
        }
    }
}
