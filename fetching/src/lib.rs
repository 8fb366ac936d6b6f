//! Gets the weights of a source onto this machine: the acts behind `core::sources::download`.
//!
//! The destination becomes a plain folder of real files. Beside them `.flexinfer/` holds what makes
//! a download resumable: a record of what is whole, a lock, and partial files. Nothing is found
//! under its own name before all of it was checked and is on the disk.

mod claim;
mod client;
mod content;
mod failures;
mod fetch;
mod folder;
mod lock;
mod logins;
mod meter;
mod partial;
mod record;
mod save;
mod settings;
mod space;
mod weights;

pub use fetch::{fetch, whole};
pub use logins::LoginFiles;
pub use settings::{FetchSettings, Token};
pub use weights::{check_weights, check_weights_alone};
