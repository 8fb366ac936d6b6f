//! Hears of pods with GPUs that end on this node. Their memory is free from then on, and whoever waits for it need not
//! wait until the next look: a model that takes another's place would, each time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::cluster::NodeStore;

/// Between two watches. The API server ends each after a while.
const PAUSE: Duration = Duration::from_secs(1);

/// Before the next try where watching failed; until then there are the usual looks.
const PATIENCE: Duration = Duration::from_secs(30);

/// By then a driver has surely taken back what an ended process had.
const SETTLED: Duration = Duration::from_secs(3);

/// Watches the pods of `store`'s node, and tells when it is worth looking at its memory.
pub(super) fn watch(store: Arc<dyn NodeStore>) -> (Receiver<()>, JoinHandle<()>) {
    // One look that is still to come is as good as several.
    let (tell, told) = channel(1);
    let watching = tokio::spawn(async move {
        let mut failing = false;
        loop {
            let watched = store.hear_of_ends(&|| look_now_and_soon(&tell)).await;
            if let (Err(error), false) = (&watched, failing) {
                tracing::warn!(error = %error, "what pods leave free is seen at the next look; may the agent watch pods?");
            }
            failing = watched.is_err();
            sleep(if failing { PATIENCE } else { PAUSE }).await;
        }
    });
    (told, watching)
}

fn look_now_and_soon(tell: &Sender<()>) {
    let _one_is_to_come = tell.try_send(());
    let tell = tell.clone();
    tokio::spawn(async move {
        sleep(SETTLED).await;
        let _one_is_to_come = tell.try_send(());
    });
}
