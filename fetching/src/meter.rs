//! Adds up what all files of a download have got, and tells it not too often.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flexinfer_core::activation::{Progress, Substage, bytes_in_words};

/// Telling is cheap for us and not for those who show it.
const LEAST_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) struct Meter<'a> {
    tell: &'a (dyn Fn(Progress) + Send + Sync),
    what: String,
    total: u64,
    done: AtomicU64,
    told: Mutex<Option<Instant>>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(
        tell: &'a (dyn Fn(Progress) + Send + Sync),
        what: String,
        total: u64,
    ) -> Self {
        Self { tell, what, total, done: AtomicU64::new(0), told: Mutex::new(None) }
    }

    /// One file has `now` bytes; `counted` is what this meter knows of it.
    pub(crate) fn count(&self, counted: &mut u64, now: u64) {
        if now >= *counted {
            self.done.fetch_add(now - *counted, Ordering::Relaxed);
        } else {
            self.done.fetch_sub(*counted - now, Ordering::Relaxed);
        }
        *counted = now;
        // Whoever finds it locked knows that it is being told right now.
        if let Ok(mut told) = self.told.try_lock()
            && told.is_none_or(|last| last.elapsed() >= LEAST_INTERVAL)
        {
            *told = Some(Instant::now());
            self.tell_now("downloading");
        }
    }

    /// Tells that something other than bytes happened.
    pub(crate) fn note(&self, note: &str) {
        self.tell_now(&format!("downloading ({note})"));
    }

    /// Tells where it stands.
    pub(crate) fn tell_now(&self, doing: &str) {
        let done = self.done.load(Ordering::Relaxed);
        (self.tell)(Progress {
            substage: Substage::Downloading,
            done: Some((done, self.total.max(done))),
            message: format!(
                "{doing} {}: {} of {}",
                self.what,
                bytes_in_words(done),
                bytes_in_words(self.total.max(done))
            ),
        });
    }
}
