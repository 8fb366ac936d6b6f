//! The Kubernetes objects that a Model becomes. [`Blueprint::of`] settles everything that they have in
//! common, its methods draw them; `docs/kubernetes-objects.md` lists what is made.
//!
//! The rules that must not break:
//!
//! - The same Model, placement and settings give the same objects, byte for byte, or a running engine would
//!   be started anew for nothing.
//! - What a Model says never reaches a name, a label or a command line unchecked: see [`names`] and
//!   [`environment`].
//! - Nobody's `replicas` are written here: who scales says how many.

mod apart;
mod benchmark;
mod blueprint;
mod claim;
mod cleanup;
mod deployment;
mod engine;
mod environment;
mod fields;
mod files;
mod flash;
mod images;
mod initial;
mod jobs;
mod litellm;
mod metadata;
mod nodes;
mod owner;
mod pod;
mod probes;
mod quantizer;
mod refusal;
mod service;
mod settings;
mod volumes;
mod weights;

pub mod names;

#[cfg(test)]
mod tests;

pub use apart::{given_back, set_apart};
pub(crate) use apart::{is_apart, revision, template};
pub(crate) use benchmark::COMPONENT as BENCHMARK;
pub use blueprint::{Adapters, Blueprint};
pub(super) use cleanup::{
    COMPONENT as MEMORY_CLEANUP, LIMIT as MEMORY_CLEANUP_LIMIT, node_of_cleanup,
};
pub(crate) use deployment::ends_first;
pub use fields::{as_applied, owns_all, owns_replicas};
pub(super) use flash::reads_kept_copy;
pub(super) use initial::FETCH;
pub(super) use jobs::{FILLER, QUANTIZER};
pub(super) use nodes::until_by_mounts;

pub use images::{Images, pinned};
pub use metadata::spec_hash;
pub use owner::is_of_the_model_before;
pub(crate) use pod::selected;
pub use refusal::Refusal;
pub use service::{Serving, service};
pub use settings::{Benchmarks, FlashDefaults, SecretKey, Settings};
pub use weights::{ClaimUse, Filling, Held, Quantized, Weights, Work};
