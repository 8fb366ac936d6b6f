//! The state of one engine, shared by everything that answers: whether it is loaded, what it is called,
//! its slots, caches, counters and faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::apis::{StoredResponses, Studio};
use crate::faults::AnswerFaults;
use crate::metrics::{Gauges, Metrics};
use crate::prefix_cache::{BLOCK_TOKENS, PrefixCache};
use crate::random::stable_hash;
use crate::request_log::RequestLog;
use crate::settings::Settings;
use crate::shares::share;
use crate::slots::Slots;

/// How far an engine has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// The share that is loaded, from 0 to 1.
    Loading(f64),
    Ready,
    /// It ended by itself.
    Dead(String),
}

/// One engine.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) slots: Slots,
    pub(crate) prefix_cache: Mutex<PrefixCache>,
    pub(crate) metrics: Metrics,
    pub(crate) log: Arc<RequestLog>,
    pub(crate) responses: StoredResponses,
    /// Adapter name to the path it was loaded from.
    pub(crate) adapters: Mutex<BTreeMap<String, String>>,
    pub(crate) studio: Studio,
    /// Ends with the engine.
    pub(crate) stop: CancellationToken,
    /// What goes on beside the connections: sockets that were HTTP before, and queued work.
    pub(crate) aside: TaskTracker,
    faults: Mutex<AnswerFaults>,
    held_tokens: Arc<AtomicUsize>,
    numbers: AtomicU64,
}

/// Tokens of a running request in the key-value cache, given back by drop.
#[derive(Debug)]
pub(crate) struct HeldTokens {
    count: usize,
    total: Arc<AtomicUsize>,
}

impl Drop for HeldTokens {
    fn drop(&mut self) {
        self.total.fetch_sub(self.count, Ordering::SeqCst);
    }
}

impl Engine {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            phase: watch::Sender::new(Phase::Loading(0.0)),
            slots: Slots::new(settings.slots),
            prefix_cache: Mutex::new(PrefixCache::new(settings.prefix_cache_blocks)),
            metrics: Metrics::new(),
            log: Arc::new(RequestLog::new(settings.request_log)),
            responses: StoredResponses::default(),
            adapters: Mutex::default(),
            studio: Studio::default(),
            stop: CancellationToken::new(),
            aside: TaskTracker::new(),
            faults: Mutex::new(settings.answer_faults.clone()),
            held_tokens: Arc::default(),
            numbers: AtomicU64::new(0),
            settings,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        *self.phase.borrow() == Phase::Ready
    }

    /// The name the engine itself goes by.
    pub(crate) fn own_name(&self) -> &str {
        self.settings.models.first().map_or("simulated", String::as_str)
    }

    /// True for the engine's own names and for those of loaded adapters.
    pub(crate) fn answers_to(&self, model: &str) -> bool {
        self.settings.models.iter().any(|name| name == model)
            || self.adapters.lock().contains_key(model)
    }

    pub(crate) fn faults(&self) -> AnswerFaults {
        self.faults.lock().clone()
    }

    pub(crate) fn set_faults(&self, faults: AnswerFaults) {
        *self.faults.lock() = faults;
    }

    /// A number that was not given before; equal engines give equal numbers in turn.
    pub(crate) fn next_number(&self) -> u64 {
        let count = self.numbers.fetch_add(1, Ordering::SeqCst);
        stable_hash(&count.to_le_bytes(), self.settings.seed)
    }

    /// Notes that a running request fills this much of the key-value cache.
    pub(crate) fn hold_tokens(&self, count: usize) -> HeldTokens {
        self.held_tokens.fetch_add(count, Ordering::SeqCst);
        HeldTokens { count, total: Arc::clone(&self.held_tokens) }
    }

    pub(crate) fn gauges(&self) -> Gauges {
        let cache_blocks = self.settings.prefix_cache_blocks.max(1);
        let held = self.held_tokens.load(Ordering::SeqCst);
        Gauges {
            running: self.slots.running(),
            waiting: self.slots.waiting(),
            cache_usage: share(held as u64, (cache_blocks * BLOCK_TOKENS) as u64),
            cache_blocks,
            adapters: self.adapters.lock().keys().cloned().collect(),
        }
    }
}
