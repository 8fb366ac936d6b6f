//! `flexinfer-node flash`: copies weights from a volume to memory before an engine starts, by many
//! readers at once.
//!
//! What must hold: a file has its name in the destination only when all of it is there; the copies
//! are of one state of the source; whatever ends the process, the next run goes on from what is whole.

mod alone;
mod arguments;
mod changes;
pub(crate) mod copies;
mod copying;
mod destination;
mod entering;
mod error;
mod folders;
mod load;
mod lock;
mod look;
mod making;
mod mover;
mod own;
mod page_cache;
mod part;
mod peers;
pub(crate) mod place;
mod record;
mod spans;
mod state;
mod turns;
mod unnamed;
mod verify;
mod walk;

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
pub use arguments::Arguments;
use flexinfer_core::activation::Failure;

use crate::ending::{Ending, Stops, failed, report_size};
use error::FlashError;
use peers::Peers;

use crate::progress::Counts;

/// Copies until all is there, or until a signal comes.
pub async fn run(arguments: Arguments) -> anyhow::Result<Ending> {
    let mut stops = Stops::listen().context("signals cannot be listened for")?;
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    let peers = Peers::find(&arguments).await;
    let counts = Counts::default();
    let (_answering, report) = (arguments.asked.tell(&counts).await, arguments.report.clone());
    let mut loading =
        tokio::task::spawn_blocking(move || load::load(&arguments, peers.as_ref(), &counts, &flag));
    let (loaded, stop) = tokio::select! {
        loaded = &mut loading => (loaded, None),
        stop = stops.next() => {
            stopped.store(true, Ordering::Relaxed);
            // The workers look at the flag between two reads, and leave nothing half-written.
            (loading.await, Some(stop))
        }
    };
    match (loaded.context("the copying ended by itself")?, stop) {
        (Err(FlashError::Stopped), Some(stop)) => Ok(Ending::Stopped(stop)),
        (Ok(size), _) => {
            if let Some(file) = &report {
                report_size(file, size);
            }
            Ok(Ending::Done)
        }
        (Err(error), _) => match error.reason() {
            Some(reason) => Ok(failed(&Failure::new(reason, told(&error)))),
            None => Err(error.into()),
        },
    }
}

/// An error with what is behind it, in one line.
fn told(error: &FlashError) -> String {
    match error {
        // It says its reason itself.
        FlashError::Damaged(failure) => failure.message.clone(),
        error => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
