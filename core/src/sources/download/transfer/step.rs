//! What is to be done next for a transfer.

use std::time::Duration;

use crate::activation::Failure;
use crate::sources::download::Request;

/// What to do next about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferStep {
    /// Send this, then call `head`, or `broken` if no answer came.
    Ask(Request),
    /// Wait this long, then call `next` again. The text says what went wrong, for people.
    Wait(Duration, String),
    /// All bytes are there: compare them with the digest, then call `verified`.
    Verify,
    /// It is what it should be: publish it.
    Publish,
    /// It cannot be had.
    Failed(Failure),
}

/// What to do with the body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Cut the partial file to `at` bytes and write the body there: call `received` for each part
    /// and then `ended` or `broken`.
    Keep {
        /// The offset of the body's first byte.
        at: u64,
    },
    /// Read it whole, it is small, and call `told` with it, or `broken`.
    Read,
    /// Drop it unread and call `next`.
    Drop,
}
