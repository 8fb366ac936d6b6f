//! What the custom resource definitions promise, looked at from outside.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod definition;
mod lora_adapter;
mod rules;
mod whole_model;
