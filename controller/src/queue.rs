//! What has to be looked at, and when: each key once, however often it was asked for, and never by
//! two at the same time.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Keys that wait for their time.
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

struct State<K> {
    by_time: BTreeSet<(Instant, K)>,
    due: BTreeMap<K, Instant>,
    /// Being looked at now.
    running: HashSet<K>,
}

impl<K: Clone + Ord + Hash> Queue<K> {
    pub(crate) fn new() -> Self {
        let state =
            State { by_time: BTreeSet::new(), due: BTreeMap::new(), running: HashSet::new() };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Looks at `key` as soon as somebody is free.
    pub(crate) fn wake(&self, key: K) {
        self.wake_at(key, Instant::now());
    }

    /// Looks at `key` at `when`, unless it is looked at earlier.
    pub(crate) fn wake_at(&self, key: K, when: Instant) {
        let mut state = self.state.lock();
        let known = state.due.get(&key).copied();
        if known.is_some_and(|known| known <= when) {
            return;
        }
        if let Some(known) = known {
            state.by_time.remove(&(known, key.clone()));
        }
        state.by_time.insert((when, key.clone()));
        state.due.insert(key, when);
        drop(state);
        self.changed.notify_one();
    }

    /// The next key that is due and that nobody looks at; it is looked at until the answer is
    /// dropped.
    pub(crate) async fn next(&self) -> Turn<'_, K> {
        loop {
            let earliest = match self.take() {
                Ok(key) => {
                    // Another may be due as well, and whoever waits for it was told once.
                    self.changed.notify_one();
                    return Turn { queue: self, key };
                }
                Err(earliest) => earliest,
            };
            let changed = self.changed.notified();
            match earliest {
                None => changed.await,
                Some(when) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(when) => {}
                },
            }
        }
    }

    fn take(&self) -> Result<K, Option<Instant>> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let free = state.by_time.iter().find(|(_, key)| !state.running.contains(key)).cloned();
        match free {
            Some((when, key)) if when <= now => {
                state.by_time.remove(&(when, key.clone()));
                state.due.remove(&key);
                state.running.insert(key.clone());
                Ok(key)
            }
            Some((when, _)) => Err(Some(when)),
            None => Err(None),
        }
    }
}

/// A key that is being looked at.
pub(crate) struct Turn<'a, K: Clone + Ord + Hash> {
    queue: &'a Queue<K>,
    key: K,
}

impl<K: Clone + Ord + Hash> Turn<'_, K> {
    pub(crate) fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Clone + Ord + Hash> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        self.queue.state.lock().running.remove(&self.key);
        self.queue.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_that_was_asked_for_twice_is_looked_at_once() {
        let queue = Queue::new();
        queue.wake("a");
        queue.wake("a");
        assert_eq!(*queue.next().await.key(), "a");
        assert!(queue.next().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_of_two_times_counts() {
        let queue = Queue::new();
        let now = Instant::now();
        queue.wake_at("a", now + Duration::from_secs(9));
        queue.wake_at("a", now + Duration::from_secs(3));
        queue.wake_at("a", now + Duration::from_secs(6));
        drop(queue.next().await);
        assert_eq!(now.elapsed(), Duration::from_secs(3));
        assert!(queue.next().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_being_looked_at_comes_again_only_afterwards() {
        let queue = Queue::new();
        queue.wake("a");
        let turn = queue.next().await;
        queue.wake("a");
        assert!(queue.next().now_or_never().is_none(), "two look at the same");
        queue.wake("b");
        assert_eq!(*queue.next().await.key(), "b");
        drop(turn);
        assert_eq!(*queue.next().await.key(), "a");
    }
}
