//! Lanes: threads with a runtime of their own, each of which serves the connections that it was given from
//! their first byte to their last. Whatever a request wakes is on its own thread: nothing is stolen from
//! another core, or fetched from its memory (docs/decisions/0024).

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tracing::dispatcher::{self, Dispatch};
use tracing::subscriber::NoSubscriber;

/// The most threads that work aside for one lane, on what would keep its other connections waiting.
const ASIDE: usize = 2;

/// One thread, and what serves the connections on it.
pub(super) struct Lane<A> {
    /// Keeps its own idle connections to engines.
    pub(super) app: Arc<A>,
    runtime: Handle,
    /// The connections that it has now.
    connections: Arc<AtomicUsize>,
}

/// Lets a lane's thread run. When it is dropped, the lane ends, with all that is still on it.
pub(super) struct Thread(#[expect(dead_code, reason = "it only has to be held")] Until);

type Until = oneshot::Sender<Infallible>;

/// One connection's place on a lane, until it is dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<A> Lane<A> {
    /// A new thread for the connections that `app` serves.
    pub(super) fn start(number: usize, app: Arc<A>) -> io::Result<(Self, Thread)> {
        let (running, end) = oneshot::channel::<Infallible>();
        let runtime =
            Builder::new_current_thread().enable_all().max_blocking_threads(ASIDE).build()?;
        let handle = runtime.handle().clone();
        let log = dispatcher::get_default(Dispatch::clone);
        thread::Builder::new().name(format!("lane-{number}")).spawn(move || {
            // The log may be that of the starting thread alone, as in tests. That of the process needs no mention,
            // and is slower with it.
            let none = dispatcher::get_default(Dispatch::is::<NoSubscriber>);
            let _log = none.then(|| dispatcher::set_default(&log));
            // Nothing is ever sent: it ends when there is no sender any more.
            let _ = runtime.block_on(end);
        })?;
        let connections = Arc::default();
        Ok((Self { app, runtime: handle, connections }, Thread(running)))
    }

    /// Serves one more connection by `serving`, which keeps its place until it is over.
    pub(super) fn serve(&self, serving: impl Future<Output = ()> + Send + 'static) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.connections));
        self.runtime.spawn(async move {
            let _place = place;
            serving.await;
        });
    }
}

/// The lane with the fewest connections: the one that the next connection belongs on.
pub(super) fn emptiest<A>(lanes: &[Lane<A>]) -> Option<&Lane<A>> {
    lanes.iter().min_by_key(|lane| lane.connections.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::thread::ThreadId;
    use std::time::Duration;

    use flexinfer_testkit::eventually;

    use super::*;

    const BOUND: Duration = Duration::from_secs(60);

    fn two() -> (Vec<Lane<()>>, Vec<Thread>) {
        (0..2).map(|number| Lane::start(number, Arc::new(())).unwrap()).unzip()
    }

    /// Which thread the next connection is on, which stays open for as long as the sender is held.
    async fn next(lanes: &[Lane<()>]) -> (ThreadId, oneshot::Sender<()>) {
        let (tell, told) = oneshot::channel();
        let (open, end) = oneshot::channel();
        emptiest(lanes).unwrap().serve(async move {
            tell.send(thread::current().id()).unwrap();
            let _ = end.await;
        });
        (told.await.unwrap(), open)
    }

    #[tokio::test]
    async fn connections_are_spread_over_the_lanes_and_stay_where_they_are() {
        let (lanes, _running) = two();
        let (first, held) = next(&lanes).await;
        let (second, ended) = next(&lanes).await;
        assert_ne!(first, second);
        drop(ended);
        let count = |lane: &Lane<()>| lane.connections.load(Ordering::Relaxed);
        assert!(eventually(BOUND, || lanes.iter().map(count).sum::<usize>() == 1).await);
        let (third, _held) = next(&lanes).await;
        assert_eq!(third, second, "where there was room");
        drop(held);
    }

    #[tokio::test]
    async fn a_lane_ends_with_all_that_is_on_it() {
        let (mut lanes, mut running) = two();
        let (lane, running) = (lanes.pop().unwrap(), running.pop().unwrap());
        let (on_it, dropped) = oneshot::channel::<()>();
        lane.serve(async move {
            let _on_it = on_it;
            pending::<()>().await;
        });
        drop(running);
        assert!(dropped.await.is_err());
    }
}
