//! How containers end: what they asked for comes first, then a signal, and when their time is over no choice. A
//! second word that leaves a pod less time begins all of it anew within that, as a kubelet does.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use rustix::process::Signal;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::container::Container;

/// How soon a process that ended is noticed.
const TICK: Duration = Duration::from_millis(50);

/// What a container has to end in after it was told, however much of its time its hook took.
const LEAST: Duration = Duration::from_secs(2);

/// The end of a pod that was told to go.
pub(super) struct Ending<'a> {
    seen: &'a mut watch::Receiver<Pod>,
    grace: Duration,
    deadline: Instant,
}

impl<'a> Ending<'a> {
    pub(super) fn of(seen: &'a mut watch::Receiver<Pod>) -> Self {
        let grace = grace(&seen.borrow_and_update());
        Self { seen, grace, deadline: Instant::now() + grace }
    }

    /// Ends these containers side by side.
    pub(super) async fn of_all(&mut self, containers: &mut [Container]) {
        loop {
            let deadline = self.deadline;
            let ends = join_all(containers.iter_mut().map(|container| end(container, deadline)));
            tokio::select! {
                _ = ends => return,
                () = self.shortened() => {}
            }
        }
    }

    async fn shortened(&mut self) {
        while self.seen.changed().await.is_ok() {
            let left = grace(&self.seen.borrow_and_update());
            if left < self.grace {
                (self.grace, self.deadline) = (left, Instant::now() + left);
                return;
            }
        }
        // Nobody looks after the pod any more.
        std::future::pending::<()>().await;
    }
}

fn grace(pod: &Pod) -> Duration {
    let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    Duration::from_secs(seconds.try_into().unwrap_or_default())
}

async fn end(container: &mut Container, deadline: Instant) {
    if !container.running() {
        return;
    }
    // A hook that fails or takes too long keeps nobody.
    drop(timeout_at(deadline, container.before_its_end()).await);
    container.signal(Signal::TERM);
    let last = deadline.max(Instant::now() + LEAST);
    while container.running() && Instant::now() < last {
        sleep(TICK).await;
        container.reap();
    }
    container.signal(Signal::KILL);
}
