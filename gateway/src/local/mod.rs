//! The local platform: engines as processes on this machine, models as files in a watched folder.
//! `core` decides which engine runs; this acts.

mod adapters;
mod check;
mod claim;
mod engines;
mod folder;
mod models;
mod processes;
mod run;
mod status;
mod supervise;
mod teller;
mod terminal;
mod world;

pub use check::check;
pub use claim::{Claim, ClaimError};
pub use engines::{Engines, Own, Settings, Sink};
pub use folder::{Contents, Folder, FolderError, Listed, ListedAdapter};
pub use run::run;
pub use supervise::supervise;
pub use terminal::{Banner, Lines, Row};

pub(crate) use teller::Teller;
