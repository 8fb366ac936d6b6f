//! What every test begins with: files, a hub, a destination, and settings that do not wait long.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Bytes;
use flexinfer_core::activation::{Failure, Progress};
use flexinfer_core::sources::Source;
use flexinfer_core::sources::download::{Patience, Selection};
use flexinfer_fetching::{FetchSettings, Token};

use crate::hub::{FakeHub, File};

/// Longer than what one read of a socket gives, so that a cut file has come in part.
pub(crate) const LENGTH: usize = 1 << 18;

impl File {
    pub(crate) fn small(path: &str, content: &str) -> Self {
        let content = Bytes::from(content.to_owned());
        Self { path: path.to_owned(), content, large: false, listed_size: None }
    }

    /// A file of `length` bytes that differ from place to place.
    pub(crate) fn large(path: &str, length: usize) -> Self {
        let content = (0..length).map(|at| (at * 7 + at / 251 % 256 + path.len()).to_le_bytes()[0]);
        Self::with(path, content.collect::<Vec<_>>())
    }

    pub(crate) fn with(path: &str, content: Vec<u8>) -> Self {
        let content = Bytes::from(content);
        Self { path: path.to_owned(), content, large: true, listed_size: None }
    }

    pub(crate) fn digest(&self) -> String {
        if self.large { sha256(&self.content) } else { git_name(&self.content) }
    }

    pub(crate) fn listed(&self) -> serde_json::Value {
        let size = self.listed_size.unwrap_or(self.content.len() as u64);
        let mut listed = serde_json::json!({"rfilename": self.path, "size": size});
        if self.large {
            listed["blobId"] = "b".repeat(40).into();
            listed["lfs"] = serde_json::json!({"sha256": self.digest(), "size": size});
        } else {
            listed["blobId"] = self.digest().into();
        }
        listed
    }
}

pub(crate) fn sha256(content: &[u8]) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(content))
}

fn git_name(content: &[u8]) -> String {
    use sha1::Digest as _;
    let mut hash = sha1::Sha1::new_with_prefix(format!("blob {}\0", content.len()));
    hash.update(content);
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

pub(crate) struct World {
    pub(crate) hub: FakeHub,
    pub(crate) settings: FetchSettings,
    pub(crate) selection: Selection,
    pub(crate) progress: Mutex<Vec<Progress>>,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn with(files: Vec<File>) -> Self {
        let hub = FakeHub::start(files).await;
        let mut settings = FetchSettings::new(&hub.endpoint, Token::new("secret")).unwrap();
        settings.terms.patience = Patience {
            attempts: 4,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(2),
            ..Patience::default()
        };
        Self {
            hub,
            settings,
            selection: Selection::default(),
            progress: Mutex::new(Vec::new()),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn destination(&self) -> PathBuf {
        self.folder.path().join("models/org/name")
    }

    /// A folder beside the destination.
    pub(crate) fn scratch(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn fetch(&self) -> Result<PathBuf, Failure> {
        self.fetch_from("HF://Org/Name").await
    }

    pub(crate) async fn fetch_from(&self, source: &str) -> Result<PathBuf, Failure> {
        let source = source.parse::<Source>().unwrap();
        let note = |progress| self.progress.lock().unwrap().push(progress);
        let destination = self.destination();
        let fetched = flexinfer_fetching::fetch(
            &source,
            &self.selection,
            &destination,
            &self.settings,
            &note,
        );
        tokio::time::timeout(Duration::from_mins(2), fetched).await.expect("the download ends")
    }

    /// The files of the destination by their paths, without our own folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        walk(&self.destination(), "", &mut files);
        files.retain(|path| !path.starts_with(".flexinfer/"));
        files.sort();
        files
    }

    /// The partial files and their lengths.
    pub(crate) fn partials(&self) -> Vec<(String, u64)> {
        let Ok(entries) = std::fs::read_dir(self.destination().join(".flexinfer/partial")) else {
            return Vec::new();
        };
        let partial = |entry: std::fs::DirEntry| {
            Some((entry.file_name().into_string().unwrap(), entry.metadata().ok()?.len()))
        };
        entries.flatten().filter_map(partial).collect()
    }

    pub(crate) fn assert_holds_all(&self, files: &[File]) {
        for file in files {
            self.assert_holds(file);
        }
    }

    pub(crate) fn assert_holds(&self, file: &File) {
        let found = std::fs::read(self.destination().join(&file.path)).unwrap();
        assert!(found == file.content, "{} is not what the hub has", file.path);
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        let kind = entry.file_type().unwrap();
        assert!(!kind.is_symlink(), "{name} is a link");
        if kind.is_dir() {
            walk(&entry.path(), &format!("{name}/"), files);
        } else {
            files.push(name);
        }
    }
}

/// Waits until `state` holds.
pub(crate) async fn until(what: &str, mut state: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if state() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to this: {what}");
}
