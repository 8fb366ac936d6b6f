//! What goes with an HTTP/1 connection beside its socket, and is reached from the path of a request by way of
//! the task that serves it.

use std::future::poll_fn;
use std::os::fd::RawFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::abortable;
use tokio_util::task::AbortOnDropHandle;

use super::head_watch::HeadWatch;
use super::together::Together;

tokio::task_local! {
    /// The conversation of the running task.
    static CURRENT: Arc<Conversation>;
}

/// One HTTP/1 connection. HTTP/2 has none, since Pingora gives each of its requests a task.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) heads: HeadWatch,
    together: Together,
}

/// The head of the running task's connection is complete.
pub(crate) fn head_arrived() {
    let _ = CURRENT.try_with(|current| current.heads.arrived());
}

/// What is written to `engine` by the running task leaves at the end of its turn, unless this is dropped
/// before. It must be dropped before `engine` is closed.
pub(crate) fn hold(engine: RawFd) -> Option<Held> {
    CURRENT
        .try_with(|current| {
            current.together.hold(engine);
            Held(Arc::clone(current))
        })
        .ok()
}

/// A request whose bytes leave together.
pub(crate) struct Held(Arc<Conversation>);

impl Held {
    /// They leave now, if they have not.
    pub(crate) fn send(self) {
        self.0.together.send();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.together.forget();
    }
}

impl Conversation {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { heads: HeadWatch::default(), together: Together::new() })
    }

    /// Runs `talk` until it ends or waits for a head longer than `limit`. False for the latter.
    pub(super) async fn over(
        self: Arc<Self>,
        limit: Duration,
        talk: impl Future<Output = ()>,
    ) -> bool {
        let (talk, end) = abortable(CURRENT.scope(Arc::clone(&self), talk));
        let timed = Arc::clone(&self);
        let _timer = AbortOnDropHandle::new(tokio::spawn(async move {
            timed.heads.overdue(limit).await;
            end.abort();
        }));
        let mut talk = pin!(talk);
        poll_fn(|context| {
            let turn = talk.as_mut().poll(context);
            self.together.send();
            turn
        })
        .await
        .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waits_too_long_for_a_head_is_ended_at_the_limit() {
        let conversation = Conversation::new();
        let waiting = Arc::clone(&conversation);
        let began = Instant::now();
        let talk = async move {
            sleep(Duration::from_secs(4)).await;
            waiting.heads.wait();
            std::future::pending::<()>().await;
        };
        assert!(!conversation.over(LIMIT, talk).await);
        assert_eq!(began.elapsed().as_secs(), 14, "counted from when the wait began");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_may_take_as_long_as_it_takes() {
        let conversation = Conversation::new();
        let waiting = Arc::clone(&conversation);
        let talk = async move {
            for _ in 0..3 {
                waiting.heads.wait();
                sleep(Duration::from_secs(9)).await;
                head_arrived();
                sleep(Duration::from_secs(100)).await;
            }
        };
        assert!(conversation.over(LIMIT, talk).await);
    }
}
