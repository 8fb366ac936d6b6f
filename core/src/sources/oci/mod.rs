//! Registries: `oci://` artifacts, and what Ollama's registry holds, which speaks the same distribution API.
//!
//! A manifest names blobs by digest; each becomes one file. The talk itself is the one of
//! [`super::download`]: here is what a registry's answers mean ([`manifest`], [`layers`]), how one is let in
//! ([`Pass`]), and whose login that takes ([`Logins`]).

mod artifact;
mod challenge;
mod layers;
mod logins;
mod manifest;
mod pass;
mod reference;
mod registry;

pub(super) use artifact::Artifact;
pub(super) use layers::MODEL_FILE;
pub use logins::{BadLogins, Login, Logins, Stored};
pub(super) use manifest::ACCEPT;
pub(super) use pass::{Pass, Reply, Told};
pub(super) use reference::EXAMPLE;
pub use reference::Reference;
pub use registry::Registry;

#[cfg(test)]
mod tests;
