//! Carries out the transfer of one file: sends, waits, writes, checks and publishes as core says.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flexinfer_core::activation::{Failure, Reason};
use flexinfer_core::sources::download::{
    Body, Conversation, RemoteFile, Request, Transfer, TransferStep,
};
use reqwest::Response;
use tokio::sync::mpsc::{self, Sender};

use crate::client::{Client, chunk, head_of, whole};
use crate::failures;
use crate::folder::Folder;
use crate::lock::Lock;
use crate::meter::Meter;
use crate::partial::{Partial, is_whole};
use crate::record::Saved;
use crate::weights;

/// Parts that wait to be written; more would only fill memory where the disk is slow.
const PARTS_IN_HAND: usize = 32;

/// How often it is told that something takes long.
const TELLING: Duration = Duration::from_secs(2);

/// Nothing has come for so long that it is told how much had.
const PAUSE: Duration = Duration::from_millis(500);

/// What the files of one download share.
pub(crate) struct Saving<'a> {
    pub(crate) client: &'a Client,
    pub(crate) conversation: &'a Conversation,
    pub(crate) folder: &'a Folder<'a>,
    pub(crate) meter: &'a Meter<'a>,
    pub(crate) lock: Option<Arc<Lock>>,
}

impl Saving<'_> {
    /// Saves `remote`, unless it is here already: `known` is what the record says of it.
    pub(crate) async fn save(
        &self,
        remote: RemoteFile,
        known: Option<&Saved>,
    ) -> Result<(RemoteFile, Saved), Failure> {
        let mut counted = 0;
        let target = remote.path.below(self.folder.root());
        let looking = already(&target, &remote, known);
        if let Some(saved) = self.telling("checking", looking).await? {
            self.meter.count(&mut counted, saved.size);
            return Ok((remote, saved));
        }
        let claiming = self.claim(&target, &remote);
        let mut partial = self.telling("checking", claiming).await?;
        let have = partial
            .length()
            .map_err(|error| failures::of_file("reading", partial.path(), &error))?;
        let mut transfer = self.conversation.transfer(remote.clone(), have);
        loop {
            self.meter.count(&mut counted, transfer.have());
            match transfer.next() {
                TransferStep::Ask(request) => {
                    partial = self.attempt(&mut transfer, &request, partial, &mut counted).await?;
                }
                TransferStep::Wait(wait, why) => {
                    self.meter.note(&format!("{}: {why}", remote.path));
                    tokio::time::sleep(wait).await;
                }
                TransferStep::Verify => {
                    let checking = verify(partial, &remote);
                    let (checked, matching) = self.telling("checking", checking).await?;
                    partial = checked;
                    transfer.verified(matching);
                }
                TransferStep::Publish => {
                    let to = target.clone();
                    let size = off_thread(move || partial.publish(&to))
                        .await
                        .map_err(|error| failures::of_file("publishing", &target, &error))?;
                    let digest = remote.digest.as_ref().map(|digest| digest.hex().to_owned());
                    return Ok((remote, Saved { size, digest }));
                }
                TransferStep::Failed(failure) => return Err(failure),
            }
        }
    }

    /// Awaits `work`, which may take minutes on a large file, and tells so now and then: silence
    /// would be taken for a download that hangs.
    async fn telling<T>(&self, doing: &str, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(TELLING, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.meter.tell_now(doing),
            }
        }
    }

    async fn claim(&self, target: &Path, remote: &RemoteFile) -> Result<Partial, Failure> {
        let parent = target.parent().unwrap_or(self.folder.root()).to_path_buf();
        let partials = self.folder.partials();
        let (remote, lock) = (remote.clone(), self.lock.clone());
        let claimed = off_thread(move || {
            std::fs::create_dir_all(&parent)?;
            let mut partial = Partial::claim(&partials, &remote, lock)?;
            // Before the hub is asked, or its answer would wait for us to read what we have.
            partial.catch_up()?;
            Ok(partial)
        });
        claimed.await.map_err(|error| failures::of_file("writing", target, &error))
    }

    /// One request, and its body if it is worth something.
    async fn attempt(
        &self,
        transfer: &mut Transfer,
        request: &Request,
        mut partial: Partial,
        counted: &mut u64,
    ) -> Result<Partial, Failure> {
        let mut response = match self.client.send(request).await {
            Ok(response) => response,
            Err(why) => {
                transfer.broken(&why);
                return Ok(partial);
            }
        };
        let at = match transfer.head(&head_of(&response)) {
            Body::Keep { at } => at,
            Body::Read => {
                match whole(response).await {
                    Ok(body) => transfer.told(&body),
                    Err(why) => transfer.broken(&why),
                }
                return Ok(partial);
            }
            Body::Drop => return Ok(partial),
        };
        let (parts, received) = mpsc::channel(PARTS_IN_HAND);
        let writing = tokio::task::spawn_blocking(move || {
            let written = partial.fill(at, received);
            (partial, written)
        });
        self.relay(transfer, &mut response, parts, counted).await;
        let (partial, written) = writing.await.map_err(|error| stopped(&error))?;
        written.map_err(|error| {
            let target = transfer.path().below(self.folder.root());
            failures::of_file("writing", &target, &error)
        })?;
        Ok(partial)
    }

    /// Hands the body on to the writer. Hanging up, by returning or by being dropped, ends it.
    async fn relay(
        &self,
        transfer: &mut Transfer,
        response: &mut Response,
        parts: Sender<Bytes>,
        counted: &mut u64,
    ) {
        loop {
            let mut next = pin!(chunk(response));
            let soon = tokio::time::timeout(PAUSE, &mut next).await;
            let part = if let Ok(part) = soon {
                part
            } else {
                // What came last was perhaps not told yet, and it may be long until more does.
                self.meter.tell_now("downloading");
                next.await
            };
            match part {
                Ok(Some(part)) => {
                    if !transfer.received(part.len() as u64) {
                        return;
                    }
                    if parts.send(part).await.is_err() {
                        // The writer has failed and says so itself.
                        return;
                    }
                    self.meter.count(counted, transfer.have());
                }
                Ok(None) => return transfer.ended(),
                Err(why) => return transfer.broken(&why),
            }
        }
    }
}

/// The file, if it is here: recorded with this digest, or found to have it.
async fn already(
    target: &Path,
    remote: &RemoteFile,
    known: Option<&Saved>,
) -> Result<Option<Saved>, Failure> {
    let digest = remote.digest.as_ref().map(|digest| digest.hex().to_owned());
    let length = std::fs::metadata(target).ok().map(|metadata| metadata.len());
    if let (Some(length), Some(known)) = (length, known)
        && known.size == length
        && known.digest == digest
        && remote.size.is_none_or(|size| size == length)
    {
        return Ok(Some(known.clone()));
    }
    let (path, file) = (target.to_path_buf(), remote.clone());
    let whole = off_thread(move || is_whole(&path, &file))
        .await
        .map_err(|error| failures::of_file("reading", target, &error))?;
    Ok(whole.then(|| Saved { size: length.unwrap_or_default(), digest }))
}

/// Whether the file is what it should be; if not, nothing of it is kept (LOAD-05).
async fn verify(mut partial: Partial, remote: &RemoteFile) -> Result<(Partial, bool), Failure> {
    let name = remote.path.file_name().to_owned();
    let checked = off_thread(move || {
        let matching = partial.matches()?;
        let malformed =
            if matching { weights::check_file(partial.path(), &name)?.err() } else { None };
        if !matching || malformed.is_some() {
            partial.empty()?;
        }
        Ok((partial, matching, malformed))
    });
    let (partial, matching, malformed) = checked
        .await
        .map_err(|error| failures::of_file("checking", Path::new(remote.path.as_str()), &error))?;
    match malformed {
        // The hub itself holds it like that: getting it again changes nothing.
        Some(malformed) if remote.digest.is_some() => {
            Err(weights::broken(Path::new(remote.path.as_str()), &malformed))
        }
        Some(_) => Ok((partial, false)),
        None => Ok((partial, matching)),
    }
}

fn stopped(error: &tokio::task::JoinError) -> Failure {
    Failure::new(Reason::DownloadFailed, format!("the download was stopped: {error}"))
}

/// Runs what blocks where it may.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
