//! Files that are followed: a change counts as soon as nobody writes any more, and is told once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::warn;

/// Files count when they have stayed the same for this long.
const SETTLED: Duration = Duration::from_millis(60);
/// How often they are read without any notice: some file systems give none.
const BETWEEN_READS: Duration = Duration::from_secs(2);

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", .path.display())]
pub struct Unreadable {
    /// Which one.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

/// Several files that mean something together.
pub(crate) struct Followed<const N: usize> {
    paths: [PathBuf; N],
    /// What was told last.
    contents: [Vec<u8>; N],
    readable: bool,
    wake: Arc<Notify>,
    /// Without it the files are only read now and then.
    _watcher: Option<RecommendedWatcher>,
}

impl<const N: usize> Followed<N> {
    /// Follows the files at `paths`, which must be there.
    pub(crate) fn open(paths: [PathBuf; N]) -> Result<Self, Unreadable> {
        let mut contents = [const { Vec::new() }; N];
        for (path, into) in paths.iter().zip(&mut contents) {
            *into = std::fs::read(path).map_err(|source| unreadable(path, source))?;
        }
        let wake = Arc::new(Notify::new());
        let watcher = watcher(&paths, &wake);
        Ok(Self { paths, contents, readable: true, wake, _watcher: watcher })
    }

    /// What is in them, in the order of their paths.
    pub(crate) fn contents(&self) -> &[Vec<u8>; N] {
        &self.contents
    }

    /// Waits until they have changed. That one cannot be read is told once, until all can be again.
    pub(crate) async fn changed(&mut self) -> Result<(), Unreadable> {
        loop {
            // Either way the files are read.
            let _ = timeout(BETWEEN_READS, self.wake.notified()).await;
            match self.settled().await {
                Ok(contents) => {
                    self.readable = true;
                    if contents != self.contents {
                        self.contents = contents;
                        return Ok(());
                    }
                }
                Err(error) if self.readable => {
                    self.readable = false;
                    return Err(error);
                }
                Err(_) => {}
            }
        }
    }

    /// The files, once nobody writes them any more.
    async fn settled(&self) -> Result<[Vec<u8>; N], Unreadable> {
        let mut before = self.read().await;
        loop {
            if before.as_ref().is_ok_and(|contents| *contents == self.contents) {
                return before;
            }
            sleep(SETTLED).await;
            let now = self.read().await;
            match (&before, &now) {
                (Ok(earlier), Ok(later)) if earlier != later => before = now,
                (Err(_), Ok(_)) => before = now,
                _ => return now,
            }
        }
    }

    async fn read(&self) -> Result<[Vec<u8>; N], Unreadable> {
        let mut contents = [const { Vec::new() }; N];
        for (path, into) in self.paths.iter().zip(&mut contents) {
            *into = tokio::fs::read(path).await.map_err(|source| unreadable(path, source))?;
        }
        Ok(contents)
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> Unreadable {
    Unreadable { path: path.to_owned(), source }
}

/// Wakes whoever follows the files. What is watched is their folders, since editors and Secrets put new
/// files in the old ones' place.
fn watcher(paths: &[PathBuf], wake: &Arc<Notify>) -> Option<RecommendedWatcher> {
    let wake = Arc::clone(wake);
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // That a file was read is no change; otherwise each look at them would bring the next.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            wake.notify_one();
        }
    });
    let watched = watcher.and_then(|mut watcher| {
        for path in paths {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            watcher.watch(folder.unwrap_or(Path::new(".")), RecursiveMode::NonRecursive)?;
        }
        Ok(watcher)
    });
    watched.inspect_err(|error| warn!(%error, "files are read every few seconds only")).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BOUND: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn two_files_that_change_one_after_another_are_told_when_both_have_settled() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        for file in [&one, &two] {
            fs::write(file, "before").expect("written");
        }
        let mut followed = Followed::open([one.clone(), two.clone()]).expect("both are there");
        fs::write(&one, "after").expect("written");
        fs::write(&two, "after").expect("written");
        let after = [b"after".to_vec(), b"after".to_vec()];
        while *followed.contents() != after {
            timeout(BOUND, followed.changed()).await.expect("a change").expect("readable");
        }
    }

    #[tokio::test]
    async fn a_folder_that_is_swapped_by_a_link_is_a_change() {
        use std::os::unix::fs::symlink;
        // As Kubernetes mounts a Secret: the file is a link into `..data`, itself a link that is replaced.
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for version in ["..1", "..2"] {
            fs::create_dir(at(version)).expect("made");
            fs::write(at(version).join("file"), version).expect("written");
        }
        symlink("..1", at("..data")).expect("linked");
        symlink("..data/file", at("file")).expect("linked");
        let mut followed = Followed::open([at("file")]).expect("it is there");
        assert_eq!(followed.contents(), &[b"..1".to_vec()]);
        symlink("..2", at("..data_tmp")).expect("linked");
        fs::rename(at("..data_tmp"), at("..data")).expect("swapped");
        timeout(BOUND, followed.changed()).await.expect("a change").expect("readable");
        assert_eq!(followed.contents(), &[b"..2".to_vec()]);
    }

    #[tokio::test]
    async fn a_file_that_is_gone_is_told_once_and_counts_again_when_it_is_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "before").expect("written");
        let mut followed = Followed::open([file.clone()]).expect("it is there");
        fs::remove_file(&file).expect("removed");
        let told = timeout(BOUND, followed.changed()).await.expect("word");
        assert_eq!(told.expect_err("it is gone").path, file);
        fs::write(&file, "after").expect("written");
        timeout(BOUND, followed.changed()).await.expect("a change").expect("readable");
    }
}
