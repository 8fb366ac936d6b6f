//! Where a request waits until an engine has a place for it, and what it holds then.

mod booking;
mod budgets;
mod clock;
mod dispatcher;
mod machine;
mod platform;
mod shell;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use flexinfer_core::fleet::Served;
use flexinfer_core::ids::{EndpointId, ModelId};
use flexinfer_core::rejection::Rejection;
use futures::future::BoxFuture;

pub use booking::Booking;
pub use budgets::Budgets;
pub use clock::Clock;
pub use dispatcher::{GroupView, Queues};
pub use platform::Platform;

pub(crate) use machine::{Machine, Sorted};
pub(crate) use shell::Shell;

/// What a request asks of the choice of its endpoint.
pub type Wish = flexinfer_core::routing::Wish<EndpointId>;

/// What the request path asks of whatever wakes models and hands out their slots.
pub trait Dispatch: Send + Sync + 'static {
    /// A slot for one request on an engine that serves `served`: queues, wakes the model where it sleeps,
    /// and ends with a slot or the reason why there is none. Dropping the future means that nobody waits
    /// any more, and gives the place in the queue back.
    fn book(
        &self,
        served: Arc<Served>,
        wish: Wish,
    ) -> BoxFuture<'static, Result<Booking, Rejection>>;

    /// The engines that the model has now, ready or not; `None` where it never has more than one, which has no name.
    fn engines(&self, model: &ModelId) -> Option<Vec<EndpointId>>;

    /// Whether the model has an engine that may have in memory what it was asked to keep. One that sleeps has none,
    /// and one that is being started has nothing in it.
    fn is_up(&self, model: &ModelId) -> bool;

    /// Another slot for the same request, after no connection to the booked engine could be made; the
    /// wish says whom to avoid. Only for requests that the engine cannot have begun.
    fn rebook(&self, failed: Booking, wish: Wish)
    -> BoxFuture<'static, Result<Booking, Rejection>>;
}
