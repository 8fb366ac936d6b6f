//! A file on its way: written at its offsets by one thread, digested on the way, and found under
//! its own name only when it is whole and on the disk. Dropping it keeps it for the next try.
//!
//! All methods but `length` block: call them off the async threads.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use flexinfer_core::sources::download::RemoteFile;
use tokio::sync::mpsc::Receiver;

use crate::claim;
use crate::content::{Content, hex};
use crate::lock::Lock;

pub(crate) struct Partial {
    remote: RemoteFile,
    file: File,
    /// Where it lies while it is ours, and the folder and key that it is given back under.
    path: PathBuf,
    folder: PathBuf,
    key: String,
    content: Content,
    /// How many bytes from the beginning `content` has seen.
    digested: u64,
    published: bool,
    /// Held until the last write is done, even when the download is no longer waited for.
    _lock: Option<Arc<Lock>>,
}

impl Partial {
    /// Takes over what there is of `remote` in `folder`, or begins a new file.
    pub(crate) fn claim(
        folder: &Path,
        remote: &RemoteFile,
        lock: Option<Arc<Lock>>,
    ) -> io::Result<Self> {
        let key = key(remote);
        let path = claim::claim(folder, &key)?;
        let file = File::options().read(true).write(true).open(&path)?;
        Ok(Self {
            content: Content::of(remote),
            remote: remote.clone(),
            file,
            path,
            folder: folder.to_path_buf(),
            key,
            digested: 0,
            published: false,
            _lock: lock,
        })
    }

    /// The bytes that are here.
    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Digests what was written earlier.
    pub(crate) fn catch_up(&mut self) -> io::Result<()> {
        self.digest_to(self.length()?)
    }

    /// Where it lies now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Cuts the file to `at` bytes and appends what comes until the other side hangs up.
    pub(crate) fn fill(&mut self, at: u64, mut parts: Receiver<Bytes>) -> io::Result<()> {
        self.file.set_len(at)?;
        self.digest_to(at)?;
        self.file.seek(SeekFrom::Start(at))?;
        while let Some(part) = parts.blocking_recv() {
            self.file.write_all(&part)?;
            self.content.update(&part);
            self.digested += part.len() as u64;
        }
        Ok(())
    }

    /// Whether all that is here is what the hub says it is.
    pub(crate) fn matches(&mut self) -> io::Result<bool> {
        let length = self.length()?;
        if self.remote.size.is_some_and(|size| size != length) {
            return Ok(false);
        }
        self.digest_to(length)?;
        Ok(self.content.is(self.remote.digest.as_ref()))
    }

    /// Forgets everything that is here.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Puts the whole file in its place. Gives its length.
    pub(crate) fn publish(mut self, target: &Path) -> io::Result<u64> {
        let length = self.length()?;
        self.file.sync_all()?;
        fs::rename(&self.path, target)?;
        self.published = true;
        if let Some(folder) = target.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(length)
    }

    /// Reads what was written earlier, as far as the digest has not seen it.
    fn digest_to(&mut self, end: u64) -> io::Result<()> {
        if self.digested > end {
            self.content = Content::of(&self.remote);
            self.digested = 0;
        }
        self.file.seek(SeekFrom::Start(self.digested))?;
        digest(&mut self.content, (&self.file).take(end - self.digested))?;
        self.digested = end;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = claim::release(&self.path, &self.folder, &self.key)
        {
            tracing::debug!(path = %self.path.display(), %error, "a partial file is left behind");
        }
    }
}

/// Whether the file at `path` is `remote` already.
pub(crate) fn is_whole(path: &Path, remote: &RemoteFile) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let right_size = Some(file.metadata()?.len()) == remote.size;
    if !right_size || remote.digest.is_none() {
        return Ok(false);
    }
    let mut content = Content::of(remote);
    digest(&mut content, file)?;
    Ok(content.is(remote.digest.as_ref()))
}

fn digest(content: &mut Content, mut from: impl io::Read) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        let read = from.read(&mut buffer)?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { return Ok(()) };
        content.update(part);
    }
}

/// What partial files of the same content are known by: its digest, else its address, which has
/// the commit in it.
pub(crate) fn key(remote: &RemoteFile) -> String {
    use sha2::Digest as _;
    let by_address = || hex(&sha2::Sha256::digest(remote.url.as_str()));
    remote.digest.as_ref().map_or_else(by_address, |digest| digest.hex().to_owned())
}
