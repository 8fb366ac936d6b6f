//! How many bytes of request bodies the process holds at once, and the guard that gives them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bound on all bodies held together (`--max-buffered-bytes`).
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    held: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, held: AtomicU64::new(0) })
    }

    /// The bytes held now.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// A guard that holds nothing yet.
    pub fn open(self: &Arc<Self>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0 }
    }

    fn take(&self, bytes: u64) -> bool {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

/// One request's part of the budget; dropping it gives the part back.
#[derive(Debug)]
pub struct Held {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Held {
    /// Takes `bytes` more. False, and nothing taken, when the budget does not have them.
    #[must_use]
    pub fn grow(&mut self, bytes: u64) -> bool {
        let fits = self.budget.take(bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guard_took_returns_when_it_is_dropped() {
        let budget = Budget::new(10);
        let mut first = budget.open();
        assert!(first.grow(6));
        let mut second = budget.open();
        assert!(!second.grow(5), "eleven bytes must not fit into ten");
        assert!(second.grow(4));
        assert_eq!(budget.held(), 10);
        drop(first);
        assert_eq!(budget.held(), 4);
        drop(second);
        assert_eq!(budget.held(), 0);
    }
}
