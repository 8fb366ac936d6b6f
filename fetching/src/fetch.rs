//! One download from beginning to end: what is here is used, the rest is listed and saved.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flexinfer_core::activation::{Failure, Progress, Reason, Substage};
use flexinfer_core::sources::Source;
use flexinfer_core::sources::download::{
    Conversation, Hub, Plan, RemoteFile, Selection, Step, Terms,
};
use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::client::Client;
use crate::failures;
use crate::folder::Folder;
use crate::lock::{self, Lock};
use crate::meter::Meter;
use crate::record::{Record, Saved};
use crate::save::{Saving, off_thread};
use crate::settings::FetchSettings;
use crate::{claim, partial, space, weights};

/// Gets what `selection` wants of `source` into the folder `destination`, and gives the path that
/// the engine is to read. What is there already is not asked for again, not even at the hub.
///
/// Dropping the future stops the download and keeps what has come; the next call goes on from it.
/// `progress` is called now and then, from this task only.
pub async fn fetch(
    source: &Source,
    selection: &Selection,
    destination: &Path,
    settings: &FetchSettings,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<PathBuf, Failure> {
    let talk =
        source.conversation(selection, &settings.terms)?.ok_or_else(|| not_downloaded(source))?;
    let folder = Folder::at(destination);
    if let Some(model) = folder.whole(&talk) {
        return Ok(model);
    }
    folder.prepare().map_err(|error| failures::of_file("making", destination, &error))?;
    let lock = if settings.exclusive { acquire(&folder, &talk, progress).await? } else { None };
    // Whoever held the lock may have fetched all of it.
    if let Some(model) = folder.whole(&talk) {
        return Ok(model);
    }
    let login = match source.registry() {
        Some((registry, repository)) => settings.logins.login(&registry, &repository).await,
        None => None,
    };
    let talk = talk.with_login(login.is_some());
    let client = Client::new(settings, login.as_ref(), talk.is_local())?;
    let mut record = Record::read(&folder.record(), &talk.identity());
    let (talk, plan) = list(&client, talk, &record).await?;
    if record.commit != plan.commit {
        record.commit.clone_from(&plan.commit);
        record.whole.clear();
        // Without a digest nothing tells whether they are the same at the new commit.
        record.files.retain(|_, saved| saved.digest.is_some());
    }
    write(&folder, &record).await?;
    let download = Download { client: &client, talk: &talk, folder: &folder, settings, progress };
    let saved = download.save_all(&plan, &mut record, lock).await;
    let written = write(&folder, &record).await;
    saved.and(written)?;
    folder.sweep();
    Ok(talk.model_path(destination))
}

/// What the engine is to read, if `fetch` has got all of it before and it is still there.
/// Asks nobody.
pub fn whole(source: &Source, selection: &Selection, destination: &Path) -> Option<PathBuf> {
    let anywhere = Terms::with(Hub::at(Hub::PUBLIC).ok()?);
    let talk = source.conversation(selection, &anywhere).ok()??;
    Folder::at(destination).whole(&talk)
}

fn not_downloaded(source: &Source) -> Failure {
    Failure::new(
        Reason::BadSource,
        format!("{source} is not something to download; its engine or its folder has it"),
    )
}

async fn acquire(
    folder: &Folder<'_>,
    talk: &Conversation,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Option<Arc<Lock>>, Failure> {
    let waiting = || {
        progress(Progress {
            substage: Substage::Downloading,
            done: None,
            message: format!("waiting for another download of {}", talk.identity()),
        });
    };
    let path = folder.lock();
    let lock = lock::acquire(&path, waiting).await;
    Ok(lock.map_err(|error| failures::of_file("locking", &path, &error))?.map(Arc::new))
}

/// The files of the source: of the commit that an unfinished download began with, if the hub still
/// has it.
async fn list(
    client: &Client,
    talk: Conversation,
    record: &Record,
) -> Result<(Conversation, Plan), Failure> {
    let Some(commit) = &record.commit else { return ask(client, talk).await };
    match ask(client, talk.pinned_to(commit)?).await {
        Err(failure) if failure.reason == Reason::BadSource => {
            tracing::info!(source = talk.identity(), commit, "begun anew: its commit is gone");
            ask(client, talk).await
        }
        listed => listed,
    }
}

async fn ask(client: &Client, mut talk: Conversation) -> Result<(Conversation, Plan), Failure> {
    loop {
        match talk.next() {
            Step::Ask(request) => match client.ask(&request).await {
                Ok((head, body)) => talk.answered(&head, &body),
                Err(why) => talk.broken(&why),
            },
            Step::Wait(wait, why) => {
                tracing::debug!(source = talk.identity(), why, "the hub is asked again");
                tokio::time::sleep(wait).await;
            }
            Step::Save(plan) => return Ok((talk, plan)),
            Step::Failed(failure) => return Err(failure),
        }
    }
}

async fn write(folder: &Folder<'_>, record: &Record) -> Result<(), Failure> {
    let (path, record) = (folder.record(), record.clone());
    let place = path.clone();
    off_thread(move || record.write(&path))
        .await
        .map_err(|error| failures::of_file("writing", &place, &error))
}

struct Download<'a> {
    client: &'a Client,
    talk: &'a Conversation,
    folder: &'a Folder<'a>,
    settings: &'a FetchSettings,
    progress: &'a (dyn Fn(Progress) + Send + Sync),
}

impl Download<'_> {
    /// Saves every file, some at a time, and enters each into the record.
    async fn save_all(
        &self,
        plan: &Plan,
        record: &mut Record,
        lock: Option<Arc<Lock>>,
    ) -> Result<(), Failure> {
        if let Some(file) = plan.files.iter().find(|file| Folder::keeps_for_itself(&file.path)) {
            let message = format!("a file of the source may not be called {}", file.path);
            return Err(Failure::new(Reason::BadSource, message));
        }
        space::check(self.folder.root(), self.missing(plan))?;
        let meter = Meter::new(self.progress, self.talk.identity(), plan.size());
        let (client, conversation, folder) = (self.client, self.talk, self.folder);
        let saving = Saving { client, conversation, folder, meter: &meter, lock };
        let known = record.files.clone();
        let mut files = plan.files.iter();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.settings.concurrency.get() {
                let Some(file) = files.next() else { break };
                running.push(saving.save(file.clone(), known.get(file.path.as_str())));
            }
            let Some(done) = running.next().await else { break };
            let (file, saved): (RemoteFile, Saved) = done?;
            record.files.insert(file.path.to_string(), saved);
        }
        for file in &plan.files {
            weights::check_shards(&file.path.below(self.folder.root()))?;
        }
        let paths = plan.files.iter().map(|file| file.path.to_string()).collect();
        record.whole.insert(self.talk.fingerprint(), paths);
        meter.tell_now("downloaded");
        Ok(())
    }

    /// The bytes that are not here yet, neither whole nor partial.
    fn missing(&self, plan: &Plan) -> u64 {
        let partials = self.folder.partials();
        let still = |file: &RemoteFile| {
            let size = file.size.unwrap_or_default();
            let found = std::fs::metadata(file.path.below(self.folder.root()));
            let here = match found.ok().map(|metadata| metadata.len()) {
                Some(length) if length == size => length,
                _ => claim::longest(&partials, &partial::key(file)),
            };
            size.saturating_sub(here)
        };
        plan.files.iter().map(still).fold(0, u64::saturating_add)
    }
}
