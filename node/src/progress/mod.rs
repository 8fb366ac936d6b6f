//! Shows how far a long work has come: a bar where a person looks on, else a log line now and then; and to whoever asks
//! ([`Asked`]).

mod asked;

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Often enough to see that it goes on, seldom enough not to fill a log.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

pub(crate) use asked::{Asked, Counts};

const BAR: &str =
    "{bar:32} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {wide_msg}";

/// The progress of one work that is counted in bytes.
pub(crate) struct Shown {
    bar: Option<ProgressBar>,
    told: Mutex<Instant>,
    counts: Counts,
}

impl Shown {
    /// Shows nothing yet; `counts` are set as it goes on.
    pub(crate) fn new(counts: Counts) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(BAR);
            ProgressBar::no_length()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, told: Mutex::new(Instant::now()), counts }
    }

    /// Shows that `done` of `total` bytes are there. `message` says it in words.
    pub(crate) fn tell(&self, done: u64, total: u64, message: impl FnOnce() -> String) {
        self.counts.set(done, total);
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(message());
        } else if self.is_time() {
            tracing::info!(done, total, "{}", message());
        }
    }

    /// Tells something else meanwhile; a bar makes room for it.
    pub(crate) fn beside(&self, tell: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(tell),
            None => tell(),
        }
    }

    fn is_time(&self) -> bool {
        // Whoever finds it locked knows that it is being told right now.
        let Ok(mut told) = self.told.try_lock() else { return false };
        let due = told.elapsed() >= BETWEEN_LINES;
        if due {
            *told = Instant::now();
        }
        due
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
