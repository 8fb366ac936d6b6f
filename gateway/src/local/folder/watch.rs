//! Notices that files change, and waits until they have settled: editors truncate and write, rename
//! the old file away before the new one comes, or save in several steps.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::catalog::{Catalog, Understood};
use super::contents::{self, Files};
use super::{Contents, FolderError, understand};

/// A file counts when it has stayed the same for this long.
const SETTLED: Duration = Duration::from_millis(60);
/// A file that is gone or empty counts when it has stayed so for this long: it may be on its way.
const SETTLED_LOSS: Duration = Duration::from_millis(400);
/// How often the folder is read without any notice: some file systems give none.
const BETWEEN_READS: Duration = Duration::from_secs(2);

/// A folder that is watched until this is dropped.
pub struct Folder {
    wake: Sender<Wake>,
    thread: Option<JoinHandle<()>>,
}

/// Reads what a file says; the bytes are all of it.
pub(super) type Understand = fn(&Path, &[u8]) -> Understood;

enum Wake {
    Changed,
    Stop,
}

impl Folder {
    /// Reads `folder` and then watches it. Returns what it says now; `changed` is called, from a
    /// thread of its own, with every later state that differs from the one before.
    ///
    /// # Errors
    /// When the folder cannot be read at all. What is wrong with its files is told in the contents.
    pub fn watch(
        folder: &Path,
        changed: impl FnMut(Contents) + Send + 'static,
    ) -> Result<(Self, Contents), FolderError> {
        Self::watch_with(folder, understand::file, changed)
    }

    pub(super) fn watch_with(
        folder: &Path,
        understand: Understand,
        changed: impl FnMut(Contents) + Send + 'static,
    ) -> Result<(Self, Contents), FolderError> {
        let unreadable = |source| FolderError::Unreadable { folder: folder.to_path_buf(), source };
        let (wake, woken) = mpsc::channel();
        // Watched before it is read, so that no change falls between the two.
        let watcher = watcher(folder, wake.clone());
        let mut reader = Reader {
            folder: folder.to_path_buf(),
            understand,
            taken: Files::new(),
            catalog: Catalog::default(),
            published: Contents::default(),
            lost: false,
        };
        reader.take(contents::read(folder).map_err(unreadable)?);
        let first = reader.catalog.contents();
        reader.published = first.clone();
        let thread = thread::Builder::new().name("folder of models".to_owned()).spawn(move || {
            reader.follow(&woken, changed);
            drop(watcher);
        });
        let thread = Some(thread.map_err(FolderError::Unwatched)?);
        Ok((Self { wake, thread }, first))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = self.wake.send(Wake::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watcher(folder: &Path, wake: Sender<Wake>) -> Option<RecommendedWatcher> {
    let notice = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| irrelevant(&event)) {
            return;
        }
        let _ = wake.send(Wake::Changed);
    };
    let watching = notify::recommended_watcher(notice).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watching
        .inspect_err(|error| {
            tracing::warn!(%error, "the system gives no notice of changed files; they are looked \
                at every {BETWEEN_READS:?} instead");
        })
        .ok()
}

/// Reading a file is an event too, and would make us read it again; so is every piece of a download
/// of weights into the folder.
fn irrelevant(event: &notify::Event) -> bool {
    let concerns = |path: &PathBuf| {
        let link = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".."));
        link || contents::may_define_models(path)
    };
    let named = !event.paths.is_empty() && !event.need_rescan();
    event.kind.is_access() || (named && !event.paths.iter().any(concerns))
}

struct Reader {
    folder: PathBuf,
    understand: Understand,
    /// The files as the catalog has taken them in.
    taken: Files,
    catalog: Catalog,
    published: Contents,
    /// Whether the folder itself could not be read the last time.
    lost: bool,
}

impl Reader {
    fn follow(&mut self, woken: &Receiver<Wake>, mut changed: impl FnMut(Contents)) {
        // What was read while the files had not settled yet.
        let mut before: Option<Files> = None;
        let mut next_read = Instant::now() + BETWEEN_READS;
        loop {
            match woken.recv_timeout(next_read.saturating_duration_since(Instant::now())) {
                Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                // Looked at when they should have settled, whatever happens until then.
                Ok(Wake::Changed) if before.is_some() => continue,
                Ok(Wake::Changed) | Err(RecvTimeoutError::Timeout) => {}
            }
            next_read = Instant::now() + BETWEEN_READS;
            let Some(now) = self.read() else { continue };
            if let Some(before) = before.take() {
                self.take_settled(&before, &now);
                let contents = self.catalog.contents();
                if contents != self.published {
                    self.published = contents.clone();
                    changed(contents);
                }
            }
            if now != self.taken {
                let settled = if self.lost_something(&now) { SETTLED_LOSS } else { SETTLED };
                next_read = Instant::now() + settled;
                before = Some(now);
            }
        }
    }

    fn read(&mut self) -> Option<Files> {
        match contents::read(&self.folder) {
            Ok(files) => {
                self.lost = false;
                Some(files)
            }
            Err(error) => {
                if !self.lost {
                    let folder = self.folder.display();
                    tracing::warn!(%error, "cannot read {folder} any more; its models stay");
                }
                self.lost = true;
                None
            }
        }
    }

    /// Takes in every file that is in `now` as it was in `before`.
    fn take_settled(&mut self, before: &Files, now: &Files) {
        let mut settled = self.taken.clone();
        settled.retain(|path, _| now.contains_key(path) || before.contains_key(path));
        for (path, file) in now {
            if before.get(path) == Some(file) {
                settled.insert(path.clone(), file.clone());
            }
        }
        self.take(settled);
    }

    fn take(&mut self, files: Files) {
        for (path, file) in &files {
            if self.taken.get(path) == Some(file) {
                continue;
            }
            match file {
                Ok(bytes) => self.catalog.update(path, (self.understand)(path, bytes)),
                Err(why) => self.catalog.unreadable(path, why),
            }
        }
        for path in self.taken.keys().filter(|path| !files.contains_key(*path)) {
            self.catalog.remove(path);
        }
        self.taken = files;
    }

    fn lost_something(&self, now: &Files) -> bool {
        self.taken.iter().any(|(path, taken)| match now.get(path) {
            None => true,
            Some(file) => file != taken && file.as_ref().is_ok_and(Vec::is_empty),
        })
    }
}
