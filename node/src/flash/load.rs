//! One load from beginning to end: look, plan, copy, look again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use flexinfer_core::loading::{Plan, Present};
use flexinfer_core::sources::RelativePath;
use flexinfer_core::sources::weights::Format;
use flexinfer_fetching::check_weights;

use super::arguments::Arguments;
use super::copying::Copying;
use super::error::FlashError;
use super::peers::Peers;
use super::record::{self, Record};
use super::walk::{Entry, modified, walk};
use super::{lock, part};

/// How often a source that changes under us is begun with anew.
const ATTEMPTS: usize = 3;

/// The folder in the destination that is our own.
const OURS: &str = ".flash";

/// Copies the source to the destination. `stopped` ends it early.
pub(super) fn load(
    arguments: &Arguments,
    peers: Option<&Peers>,
    stopped: &AtomicBool,
) -> Result<(), FlashError> {
    let ours = arguments.dst.join(OURS);
    fs::create_dir_all(&ours).map_err(|error| FlashError::writing(&ours, error))?;
    let _lock = lock::acquire(&ours.join("lock"), stopped)?;
    let mut attempt = 1;
    loop {
        match once(arguments, peers, stopped) {
            Err(FlashError::Changed { path }) if attempt < ATTEMPTS => {
                attempt += 1;
                tracing::warn!(path = %path.display(), "the source has changed; begun anew");
            }
            loaded => return loaded,
        }
    }
}

fn once(
    arguments: &Arguments,
    peers: Option<&Peers>,
    stopped: &AtomicBool,
) -> Result<(), FlashError> {
    let begun = Instant::now();
    let wishes = arguments.wishes();
    let look = || walk(&arguments.src, arguments.root.as_deref(), &wishes);
    let seen = look()?;
    let found = wishes.choose(seen.iter().map(|entry| entry.found.clone()).collect());
    let fresh = is_fresh(&arguments.dst);
    let there = |path: &RelativePath| present(&path.below(&arguments.dst));
    let plan = Plan::new(found, |path| if fresh { None } else { there(path) });
    let entries = in_order(&plan, &seen);
    // Most files of a folder with a great many are of no format that could be checked.
    let checkable = |entry: &&&Entry| Format::of(entry.found.path.file_name()).is_some();
    for entry in entries.iter().filter(checkable) {
        check_weights(&entry.source(&arguments.src)).map_err(FlashError::Damaged)?;
    }
    sweep(arguments, &plan)?;
    check_room(&arguments.dst, &plan)?;

    let record = Record::at(arguments.dst.join(OURS).join("files.json"));
    let earlier = record.read();
    let now = plan.copies.iter().chain(&plan.whole).map(|found| found.path.clone());
    let now = now.collect::<BTreeSet<_>>();
    record.write(earlier.union(&now))?;
    Copying::new(arguments, &plan, &entries, peers, stopped).run()?;
    // Copies are of one state each; this makes them all of the same one.
    if let Some(path) = difference(&seen, &look()?) {
        return Err(FlashError::Changed { path: path.below(&arguments.src) });
    }
    record::remove(&arguments.dst, earlier.difference(&now))?;
    record.write(now.iter())?;

    let seconds = begun.elapsed().as_secs_f64();
    tracing::info!(
        copied = plan.copies.len(),
        whole = plan.whole.len(),
        bytes = plan.length(),
        from_peers = peers.map_or(0, Peers::given),
        seconds,
        "the weights are in {}",
        arguments.dst.display()
    );
    Ok(())
}

/// Whether nothing is in the destination but what is our own. Then none of a great many files is looked for.
fn is_fresh(destination: &Path) -> bool {
    let ours = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == OURS);
    fs::read_dir(destination).is_ok_and(|mut entries| entries.all(ours))
}

fn present(path: &Path) -> Option<Present> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let present = Present { length: metadata.len(), modified: modified(&metadata) };
    metadata.is_file().then_some(present)
}

/// The entries of the plan's copies, in their order.
fn in_order<'a>(plan: &Plan, seen: &'a [Entry]) -> Vec<&'a Entry> {
    let of = |path: &RelativePath| seen.binary_search_by(|entry| entry.found.path.cmp(path)).ok();
    plan.copies.iter().filter_map(|copy| seen.get(of(&copy.path)?)).collect()
}

/// The first file that is not the same in both.
fn difference(before: &[Entry], after: &[Entry]) -> Option<RelativePath> {
    let unlike = before.iter().zip(after).find(|(before, after)| before != after);
    let more = || before.get(after.len()).or_else(|| after.get(before.len()));
    let entry = unlike.map(|(before, _)| before).or_else(more)?;
    Some(entry.found.path.clone())
}

fn check_room(folder: &Path, plan: &Plan) -> Result<(), FlashError> {
    let disk =
        rustix::fs::statvfs(folder).map_err(|error| FlashError::writing(folder, error.into()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    // A tmpfs without a limit says that it has no blocks at all.
    let unlimited = disk.f_blocks == 0;
    let checked = if unlimited { Ok(()) } else { plan.room().check(free) };
    checked.map_err(|shortage| FlashError::NoRoom { path: folder.to_path_buf(), shortage })
}

/// Removes the parts that a killed load has left in the folders of this plan. We hold the lock.
fn sweep(arguments: &Arguments, plan: &Plan) -> Result<(), FlashError> {
    let files = plan.copies.iter().chain(&plan.whole).map(|file| file.path.below(&arguments.dst));
    let mut folders = files.filter_map(|file| file.parent().map(PathBuf::from)).collect::<Vec<_>>();
    folders.push(arguments.dst.clone());
    folders.sort();
    folders.dedup();
    for folder in folders {
        // A folder that is not there yet has nothing in it.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let left = entry.file_name().to_str().is_some_and(|name| name.ends_with(part::SUFFIX));
            if left && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                let path = entry.path();
                fs::remove_file(&path).map_err(|error| FlashError::writing(&path, error))?;
            }
        }
    }
    Ok(())
}
