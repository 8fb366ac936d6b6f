//! Queues: who waits, who is served, and in [`Group`] whose engine runs.
//!
//! There are two machines. Where this process starts the engines, a [`Group`] decides about all members
//! of a sharing group; where somebody else does, each model has a [`Pool`] of endpoints.
//!
//! [`Group`] is a state machine: events and the time in, [`Effect`]s out. It holds every member of
//! one sharing group, so that choosing an endpoint, booking a slot on it and deciding a swap are
//! one step under one lock. The shell that owns it (`gateway/src/queues`) carries effects out after
//! the lock is released.
//!
//! Guardrails. An event changes the state first and then calls `settle`, which derives everything
//! else from the whole state; no event handler starts, stops or grants by itself, except the grant
//! of a free slot on a model that serves and has no queue. Every effect is final: a grant is given
//! back through `finish`, never taken back. An engine's resources count as taken until its platform
//! reported it gone or failed, whatever was asked of it.

mod effects;
mod group;
mod line;
mod pool;
mod swap_wait;
mod terms;
mod view;
mod waiting;

pub use effects::{Effect, Effects, Notice};
pub use group::Group;
pub use pool::{EndpointState, EndpointView, Listed, Pool, PoolEffect, PoolView, Traffic};
pub use swap_wait::SwapWait;
pub use terms::{Backoff, Policy, Terms};
pub use view::{MemberView, Phase};
