//! How a load comes to its destination: the folders are made, and whoever else is at work there is waited for.

use std::io;
use std::sync::atomic::AtomicBool;

use super::alone::Alone;
use super::arguments::Arguments;
use super::destination::Destination;
use super::error::FlashError;
use super::lock::{self, Lock};
use super::{making, place};

/// How often it is come to anew, where somebody takes the folder away each time.
const ATTEMPTS: usize = 100;

/// A destination that nobody else copies to until this is dropped, if its file system has locks.
pub(super) struct Entered<'a> {
    pub(super) destination: Destination<'a>,
    pub(super) lock: Option<Lock>,
    /// That of the folder which is to hold this copy alone.
    _above: Option<Lock>,
}

impl<'a> Entered<'a> {
    /// Waits until the destination is nobody else's.
    pub(super) fn when_free(
        arguments: &'a Arguments,
        stopped: &AtomicBool,
    ) -> Result<Self, FlashError> {
        let Arguments { src, dst, alone_in, .. } = arguments;
        let alone = alone_in.as_ref().map(|top| Alone::of(top, dst, src)).transpose()?;
        let mut attempt = 1;
        loop {
            match Self::now(arguments, alone.as_ref(), stopped) {
                // Whoever takes a copy away takes its folder too, and may do so while we wait for the lock in it.
                Err(FlashError::Write { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                entered => return entered,
            }
        }
    }

    fn now(
        arguments: &'a Arguments,
        alone: Option<&Alone>,
        stopped: &AtomicBool,
    ) -> Result<Self, FlashError> {
        let Arguments { src, dst, .. } = arguments;
        let (folder, above) = match alone {
            Some(alone) => {
                let (top, above) = alone.enter(stopped)?;
                (alone.destination(&top)?, above)
            }
            None => (making::folder_at(dst)?, None),
        };
        place::check_apart(src, &folder, dst)?;
        let destination = Destination::of(folder, dst)?;
        let lock = lock::acquire(&destination.own, stopped)?;
        if let Some(alone) = alone {
            alone.clear_below(&destination.folder, stopped)?;
        }
        Ok(Self { destination, lock, _above: above })
    }
}
