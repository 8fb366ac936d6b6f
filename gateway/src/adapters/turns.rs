//! Whatever is asked of an engine about an adapter is asked in the order in which it was decided: one call after
//! another, for each engine and adapter.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::task::JoinHandle;

/// An adapter of one engine: where the engine listens, and what it calls the adapter.
pub(super) type Place = (SocketAddr, Arc<str>);

/// Who is the last in each line.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Each is told when the last one is done, however it ended.
    last: Mutex<HashMap<Place, oneshot::Receiver<()>>>,
}

impl Turns {
    /// Does `work` once all that was begun before for `place` is done. It goes on though nobody waits for it.
    pub(super) fn take<T: Send + 'static>(
        &self,
        place: Place,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let (done, ended) = oneshot::channel::<()>();
        let before = {
            let mut last = self.last.lock();
            last.retain(|_, ended| matches!(ended.try_recv(), Err(TryRecvError::Empty)));
            last.insert(place, ended)
        };
        tokio::spawn(async move {
            // Dropped at the end of this task, even if the work panics or is broken off.
            let _done = done;
            if let Some(before) = before {
                let _ = before.await;
            }
            work.await
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    fn place(name: &str) -> Place {
        (SocketAddr::from(([127, 0, 0, 1], 1)), name.into())
    }

    #[tokio::test]
    async fn one_adapter_is_talked_of_in_order_and_others_meanwhile() {
        let (turns, order) = (Turns::default(), Arc::new(Mutex::new(Vec::new())));
        let first = Arc::new(Notify::new());
        let say = |what: &'static str| {
            let order = Arc::clone(&order);
            async move { order.lock().push(what) }
        };
        let waits = {
            let (first, say) = (Arc::clone(&first), say("first"));
            turns.take(place("a"), async move {
                first.notified().await;
                say.await;
            })
        };
        let second = turns.take(place("a"), say("second"));
        turns.take(place("b"), say("other")).await.unwrap();
        first.notify_one();
        second.await.unwrap();
        waits.await.unwrap();
        assert_eq!(*order.lock(), ["other", "first", "second"]);
    }

    #[tokio::test]
    async fn what_ends_badly_keeps_nobody_waiting() {
        let turns = Turns::default();
        let endless = turns.take(place("a"), std::future::pending::<()>());
        let next = turns.take(place("a"), async {});
        endless.abort();
        next.await.unwrap();
        turns.take(place("b"), async {}).await.unwrap();
        assert_eq!(turns.last.lock().len(), 1, "those that are done are kept");
    }
}
