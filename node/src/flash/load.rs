//! One load from beginning to end: look, plan, copy, look again.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use flexinfer_core::loading::Plan;
use flexinfer_core::sources::RelativePath;
use flexinfer_core::sources::weights::Format;
use flexinfer_fetching::check_weights;

use super::arguments::Arguments;
use super::changes::Changes;
use super::copying::Copying;
use super::destination::{Destination, is_taken, present};
use super::entering::Entered;
use super::error::FlashError;
use super::folders::Opened;
use super::look::{Entry, Seen};
use super::making::NoFolder;
use super::peers::Peers;
use super::place;
use super::record::{self, Known};
use crate::progress::Counts;

/// How often a source that changes under us is begun with anew.
const ATTEMPTS: usize = 3;

/// Copies the source to the destination, and counts it in `counts`; the answer is how large all of it is, in bytes.
/// `stopped` ends it early.
pub(super) fn load(
    arguments: &Arguments,
    peers: Option<&Peers>,
    counts: &Counts,
    stopped: &AtomicBool,
) -> Result<u64, FlashError> {
    // Held until this load has ended.
    let entered = Entered::when_free(arguments, stopped)?;
    let (destination, locked) = (&entered.destination, entered.lock.is_some());
    let load = Load { arguments, destination, peers, counts, stopped, locked };
    let mut attempt = 1;
    loop {
        match load.once() {
            Err(FlashError::Changed { path }) if attempt < ATTEMPTS => {
                attempt += 1;
                tracing::warn!(path = %path.display(), "the source has changed; begun anew");
            }
            loaded => return loaded,
        }
    }
}

struct Load<'a> {
    arguments: &'a Arguments,
    destination: &'a Destination<'a>,
    peers: Option<&'a Peers>,
    counts: &'a Counts,
    stopped: &'a AtomicBool,
    /// Nobody else copies to this destination: we hold its lock.
    locked: bool,
}

impl Load<'_> {
    fn once(&self) -> Result<u64, FlashError> {
        let begun = Instant::now();
        let wishes = self.arguments.wishes();
        let look = || Seen::now(self.arguments, &wishes);
        let seen = look()?;
        let (record, durable) = (self.destination.record(), !self.destination.in_memory);
        let is_alone = self.arguments.alone_in.is_some();
        let mut known = record.read();
        let plan = self.plan(&seen, &known.files, wishes.choose(seen.entries.iter().collect()))?;
        if !is_alone && !self.locked {
            // A load beside this one may have put there just now what is whole: its record is older than its files.
            known = record.read();
        }
        if !is_alone && !self.destination.is_fresh() {
            place::check_theirs(self.destination, &seen, &plan.copies, &known)?;
        }
        let Known { files: mut ours, is_torn } = known;
        if is_torn && self.locked {
            // Loads have been here, and nobody else is at work: what is as a load leaves it is ours.
            let whole = plan.whole.iter().map(|entry| &entry.found.path);
            ours = whole.filter(|path| record.is_mine(path)).cloned().collect();
        }
        self.check_formats(&plan.copies)?;
        self.destination.check_room(&plan)?;

        let changes = Changes::of(&plan, &ours, is_alone);
        if is_torn || changes.are_any() {
            record.write(changes.all(), durable)?;
        }
        self.copy(&seen, &plan, &changes)?;
        // Copies are of one state each; this makes them all of the same one.
        if let Some(path) = seen.difference(&look()?) {
            return Err(FlashError::Changed { path: path.below(&self.arguments.src) });
        }
        let Changes { files, gone, .. } = changes;
        let (destination, peers) = (self.destination, self.peers);
        if !gone.is_empty() {
            record::remove(&destination.folder, destination.path, gone.into_iter())?;
            record.write(files.into_iter(), durable)?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        tracing::info!(
            copied = plan.copies.len(),
            whole = plan.whole.len(),
            bytes = plan.length(),
            from_peers = peers.map_or(0, Peers::given),
            seconds,
            "the weights are in {}",
            destination.path.display()
        );
        let whole = plan.whole.iter().map(|entry| entry.found.length);
        Ok(whole.fold(plan.length(), u64::saturating_add))
    }

    /// Copies what is planned, and is in the record by now.
    fn copy(
        &self,
        seen: &Seen,
        plan: &Plan<&Entry>,
        changes: &Changes<'_>,
    ) -> Result<(), FlashError> {
        let Self { arguments, destination, peers, counts, stopped, .. } = *self;
        let is_alone = arguments.alone_in.is_some();
        let mut copying =
            Copying::new(arguments, destination, seen, plan, peers, counts.clone(), stopped);
        // Without a lock, what comes meanwhile may be another load's.
        if self.locked && !is_alone {
            copying = copying.writing_over_only(changes.ours);
        }
        let other = if is_alone { NoFolder::Goes } else { NoFolder::Stays };
        let in_the_way = changes.in_the_way(seen).into_iter();
        let copied = record::remove(&destination.folder, destination.path, in_the_way)
            .and_then(|()| destination.make_folders(seen, &plan.copies, other))
            .and_then(|()| copying.run());
        if copied.is_err()
            && let Err(error) = self.disclaim(seen, &copying, changes)
        {
            tracing::warn!(%error, "what somebody else has put there may be taken for a copy");
        }
        copied
    }

    /// Takes out of the record what somebody else has put there under the name of a copy that has not come.
    fn disclaim(
        &self,
        seen: &Seen,
        copying: &Copying<'_>,
        changes: &Changes<'_>,
    ) -> Result<(), FlashError> {
        let Destination { folder, in_memory, .. } = self.destination;
        let mut folders = Opened::below(folder, &seen.folders);
        let theirs = copying.missing().filter(|entry| is_taken(&mut folders, entry));
        let theirs = theirs.map(|entry| &entry.found.path).collect::<HashSet<_>>();
        if theirs.is_empty() {
            return Ok(());
        }
        let ours = changes.all().filter(|path| !theirs.contains(path));
        self.destination.record().write(ours, !in_memory)
    }

    /// What there is to do; clears away first what a killed load has left.
    fn plan<'a>(
        &self,
        seen: &'a Seen,
        ours: &[RelativePath],
        wanted: Vec<&'a Entry>,
    ) -> Result<Plan<&'a Entry>, FlashError> {
        if self.destination.is_fresh() {
            return Ok(Plan::new(wanted, |_| None));
        }
        place::check_folders_apart(&seen.folders, self.destination)?;
        self.destination.sweep(&seen.folders, ours, self.locked)?;
        let mut folders = Opened::below(&self.destination.folder, &seen.folders);
        Ok(Plan::new(wanted, |entry| present(&mut folders, entry)))
    }

    /// Whether the weights are whole, as far as their format tells.
    fn check_formats(&self, entries: &[&Entry]) -> Result<(), FlashError> {
        // Most files of a folder with a great many are of no format that could be checked.
        let checkable = |entry: &&&Entry| Format::of(entry.found.path.file_name()).is_some();
        for entry in entries.iter().filter(checkable) {
            let place = entry.found.path.below(&self.arguments.src);
            check_weights(&place).map_err(FlashError::Damaged)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::thread;

    use clap::Parser;

    use super::*;
    use crate::flash::making;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(source: &Path, destination: &Path) -> Arguments {
        let line =
            ["flash", "--src", source.to_str().unwrap(), "--dst", destination.to_str().unwrap()];
        Line::parse_from(line).arguments
    }

    /// A load as one is where locks do not work.
    fn load_without_lock(arguments: &Arguments) -> Result<u64, FlashError> {
        let folder = making::folder_at(&arguments.dst)?;
        let destination = Destination::of(folder, &arguments.dst)?;
        let (stopped, counts) = (AtomicBool::new(false), Counts::default());
        let (counts, stopped) = (&counts, &stopped);
        let destination = &destination;
        Load { arguments, destination, peers: None, counts, stopped, locked: false }.once()
    }

    #[test]
    fn load_02_without_locks_what_another_load_may_still_write_is_left_alone() {
        let (source, destination) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(source.path().join("model.bin"), "weights").unwrap();
        let arguments = arguments(source.path(), destination.path());
        let part = destination.path().join(".7-7-7.flash-tmp");
        fs::write(&part, "half").unwrap();
        load_without_lock(&arguments).unwrap();
        assert_eq!(fs::read_to_string(&part).unwrap(), "half");
        assert_eq!(fs::read_to_string(destination.path().join("model.bin")).unwrap(), "weights");
        let size = load(&arguments, None, &Counts::default(), &AtomicBool::new(false)).unwrap();
        assert_eq!(size, 7, "what was whole already counts too");
        assert!(!part.exists(), "under the lock it is nobody's");
    }

    #[test]
    fn load_02_without_locks_two_loads_at_once_come_out_right() {
        let source = tempfile::tempdir().unwrap();
        let weights = (0..3_u8).map(|nth| vec![nth + 1; 3 << 20]).collect::<Vec<_>>();
        for (nth, content) in weights.iter().enumerate() {
            fs::write(source.path().join(format!("{nth}.bin")), content).unwrap();
        }
        for turn in 0..20 {
            let destination = tempfile::tempdir().unwrap();
            let arguments = arguments(source.path(), destination.path());
            thread::scope(|scope| {
                let loads = [(); 2].map(|()| scope.spawn(|| load_without_lock(&arguments)));
                for load in loads {
                    load.join().unwrap().unwrap();
                }
            });
            for (nth, content) in weights.iter().enumerate() {
                let copy = fs::read(destination.path().join(format!("{nth}.bin"))).unwrap();
                assert!(copy == *content, "file {nth} in turn {turn}");
            }
        }
    }
}
