//! Reads long bodies on threads of their own: whatever goes through all of one keeps a lane from its other
//! connections for as long as that takes.

use flexinfer_core::rejection::Rejection;
use tokio::task::spawn_blocking;

/// A longer body takes a moment to read, in bytes.
const LONG: usize = 1024 * 1024;

/// Whether `body` is to be read aside.
pub(crate) fn is_long(body: &[u8]) -> bool {
    body.len() > LONG
}

/// What `reading` finds; meanwhile the lane serves its other connections.
pub(crate) async fn read<T: Send + 'static>(
    reading: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Rejection> {
    // It fails only while the gateway ends.
    spawn_blocking(reading).await.map_err(|_| Rejection::ShuttingDown)
}
