//! Responses that are kept.

/// Responses kept for later.
#[derive(Debug, Default)]
pub(crate) struct StoredResponses {}
