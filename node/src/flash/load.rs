//! One load from beginning to end: look, plan, copy, look again.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use flexinfer_core::loading::Plan;
use flexinfer_core::sources::RelativePath;
use flexinfer_core::sources::weights::Format;
use flexinfer_fetching::check_weights;

use super::alone::Alone;
use super::arguments::Arguments;
use super::changes::{becoming_ours, gone, in_the_way};
use super::copying::Copying;
use super::destination::{Destination, present};
use super::error::FlashError;
use super::folders::Opened;
use super::lock;
use super::look::{Entry, Seen};
use super::peers::Peers;
use super::record::{self, Known};
use super::{making, place};
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
    let Arguments { src, dst, alone_in, .. } = arguments;
    let alone = alone_in.as_ref().map(|top| Alone::of(top, dst, src)).transpose()?;
    // Held until this load has ended.
    let entered = alone.as_ref().map(|alone| alone.enter(stopped)).transpose()?;
    let folder = match (&alone, &entered) {
        (Some(alone), Some((entered, _lock))) => alone.destination(entered)?,
        _ => making::folder_at(dst)?,
    };
    place::check_apart(src, &folder, dst)?;
    let destination = Destination::of(folder, dst)?;
    let lock = lock::acquire(&destination.own, stopped)?;
    if let Some(alone) = &alone {
        alone.clear_below(&destination.folder, stopped)?;
    }
    let load = Load { arguments, destination, peers, counts, stopped, alone: lock.is_some() };
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
    destination: Destination<'a>,
    peers: Option<&'a Peers>,
    counts: &'a Counts,
    stopped: &'a AtomicBool,
    /// Nobody else copies to this destination: we hold its lock.
    alone: bool,
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
        if !is_alone && !self.alone {
            // A load beside this one may have put there just now what is whole: its record is older than its files.
            known = record.read();
        }
        if !is_alone && !self.destination.is_fresh() {
            place::check_theirs(&self.destination, &seen, &plan.copies, &known)?;
        }
        let Known { files: mut ours, is_torn } = known;
        if is_torn && self.alone {
            // Loads have been here, and nobody else is at work: what is as a load leaves it is ours.
            let whole = plan.whole.iter().map(|entry| &entry.found.path);
            ours = whole.filter(|path| record.is_mine(path)).cloned().collect();
        }
        self.check_formats(&plan.copies)?;
        self.destination.check_room(&plan)?;

        let (destination, peers) = (&self.destination, self.peers);
        let files = becoming_ours(&plan, &ours, is_alone);
        let gone = gone(&ours, &files);
        if is_torn || ours.len() != files.len() || !gone.is_empty() {
            record.write(files.iter().chain(&gone).copied(), durable)?;
        }
        let in_the_way = in_the_way(&gone, &seen, &files).into_iter();
        record::remove(&destination.folder, destination.path, in_the_way)?;
        destination.make_folders(&seen, &plan.copies, is_alone)?;
        let counts = self.counts.clone();
        Copying::new(self.arguments, destination, &seen, &plan, peers, counts, self.stopped)
            .run()?;
        // Copies are of one state each; this makes them all of the same one.
        if let Some(path) = seen.difference(&look()?) {
            return Err(FlashError::Changed { path: path.below(&self.arguments.src) });
        }
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
        place::check_folders_apart(&seen.folders, &self.destination)?;
        self.destination.sweep(&seen.folders, ours, self.alone)?;
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
        Load { arguments, destination, peers: None, counts, stopped, alone: false }.once()
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
