//! What queues ask of the platform below them: processes on this machine, later pods.

use std::sync::Arc;

use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_core::queueing::Notice;
use tokio::sync::mpsc;

/// Carries out what the queues decide. Called one order at a time, in the order of decision; must
/// not block.
pub trait Platform: Send + Sync + 'static {
    /// Starts an engine; what becomes of it is reported to [`Queues::report`](super::Queues::report).
    fn start(&self, instance: InstanceId, model: &ModelId);

    /// Ends it; reported as gone.
    fn stop(&self, instance: InstanceId, model: &ModelId);

    /// Something for people and metrics.
    fn tell(&self, model: &ModelId, notice: &Notice);
}

/// One decision on its way to the platform.
#[derive(Debug)]
pub(crate) enum Order {
    Start { instance: InstanceId, model: ModelId },
    Stop { instance: InstanceId, model: ModelId },
    Tell { model: ModelId, notice: Notice },
}

/// Hands orders over until no queue is left that could give any.
///
/// One task for all: a group's stop must not overtake its start, and both may come from any thread.
pub(super) async fn carry_out(
    mut orders: mpsc::UnboundedReceiver<Order>,
    platform: Arc<dyn Platform>,
) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Start { instance, model } => platform.start(instance, &model),
            Order::Stop { instance, model } => platform.stop(instance, &model),
            Order::Tell { model, notice } => platform.tell(&model, &notice),
        }
    }
}
