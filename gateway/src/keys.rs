//! Who has a key, read from a file that is watched: a change counts at once, and a file with a fault
//! never replaces one without. The keys themselves are not in the file, only their digests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use flexinfer_core::callers::{self, Callers};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::{info, warn};

/// A file counts when it has stayed the same for this long.
const SETTLED: Duration = Duration::from_millis(60);
/// How often the file is read without any notice: some file systems give none.
const BETWEEN_READS: Duration = Duration::from_secs(2);

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

struct Watching {
    task: JoinHandle<()>,
    /// Without it the file is only read now and then.
    _watcher: Option<RecommendedWatcher>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
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
        let bytes =
            std::fs::read(path).map_err(|error| KeysError::Unreadable(path.to_owned(), error))?;
        let first = understand(path, &bytes).map_err(KeysError::Faulty)?;
        let callers = Arc::new(ArcSwap::from_pointee(first.with(&others)));
        let wake = Arc::new(Notify::new());
        let watcher = watcher(path, &wake);
        let file = File { path: path.to_owned(), bytes, others, callers: Arc::clone(&callers) };
        let task = tokio::spawn(file.follow(wake));
        let watching = Some(Watching { task, _watcher: watcher });
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

/// Wakes whoever follows the file. What is watched is its folder, since editors and Secrets put a new
/// file in the old one's place.
fn watcher(path: &Path, wake: &Arc<Notify>) -> Option<RecommendedWatcher> {
    let wake = Arc::clone(wake);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let watched =
        notify::recommended_watcher(move |_| wake.notify_one()).and_then(|mut watcher| {
            watcher.watch(folder.unwrap_or(Path::new(".")), RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
    watched.inspect_err(|error| warn!(%error, "the keys file is read every few seconds only")).ok()
}

struct File {
    path: PathBuf,
    /// What was understood, or complained about, last.
    bytes: Vec<u8>,
    others: Callers,
    callers: Arc<ArcSwap<Callers>>,
}

impl File {
    async fn follow(mut self, wake: Arc<Notify>) {
        let mut readable = true;
        loop {
            // Either way the file is read.
            let _ = tokio::time::timeout(BETWEEN_READS, wake.notified()).await;
            match self.settled().await {
                Ok(bytes) if bytes != self.bytes => self.take(bytes),
                Ok(_) => {}
                Err(error) if readable => {
                    warn!(%error, "the keys file cannot be read; the keys stay as they were");
                    readable = false;
                    continue;
                }
                Err(_) => continue,
            }
            readable = true;
        }
    }

    /// The file, once nobody writes it any more.
    async fn settled(&self) -> std::io::Result<Vec<u8>> {
        let mut before = tokio::fs::read(&self.path).await;
        loop {
            if before.as_ref().is_ok_and(|bytes| *bytes == self.bytes) {
                return before;
            }
            tokio::time::sleep(SETTLED).await;
            let now = tokio::fs::read(&self.path).await;
            match (&before, &now) {
                (Ok(earlier), Ok(later)) if earlier != later => before = now,
                (Err(_), Ok(_)) => before = now,
                _ => return now,
            }
        }
    }

    fn take(&mut self, bytes: Vec<u8>) {
        match understand(&self.path, &bytes) {
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
        self.bytes = bytes;
    }
}
