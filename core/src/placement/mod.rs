//! Where pods should run: which nodes can hold one ([`refusal`]), and which of them suits it best
//! ([`score::rank`]).
//!
//! What must not break:
//! - A pod that asks for no GPU is none of our business: every node may have it.
//! - A text that cannot be read is never taken for "nothing": its node takes no pod with a GPU (GPU-14).
//! - Memory that a pod was promised and has not taken yet is not free (GPU-12).

pub mod benchmarks;
pub mod score;

mod fair_share;
mod filter;
mod leaving;
mod node;
mod pod;
mod ranking;
mod reservation;
mod room;
mod said;
mod speeds;

#[cfg(test)]
mod tests;

pub use fair_share::{FairShare, Tenant};
pub use filter::{Refusal, refusal};
pub use leaving::is_leaving;
pub use node::Node;
pub use pod::Pod;
pub use reservation::Reservation;
pub use room::Room;
pub use said::Said;
pub use speeds::Results;
