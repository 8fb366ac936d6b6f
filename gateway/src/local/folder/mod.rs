//! The folder of Models: read at the start, watched from then on. What is published is always whole:
//! a file that cannot be understood keeps what it said before, and says what is wrong with it.

mod adapters;
mod catalog;
mod contents;
mod understand;
mod watch;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use flexinfer_core::effective::Effective;
use flexinfer_core::ids::ModelId;
use flexinfer_crds::{LoRAAdapter, Model};

pub use watch::Folder;

/// One Model that a file defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The Model as its file says it.
    pub model: Arc<Model>,
    /// What it means, as its first generation.
    pub effective: Effective,
    /// The file that defines it.
    pub file: PathBuf,
    /// The line in that file where its document begins, from 1 on.
    pub line: usize,
}

/// One LoRA adapter that a file defines.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedAdapter {
    /// Its namespace and name.
    pub id: ModelId,
    /// The adapter as its file says it.
    pub adapter: Arc<LoRAAdapter>,
    /// The file that defines it.
    pub file: PathBuf,
    /// The line in that file where its document begins, from 1 on.
    pub line: usize,
}

impl Listed {
    /// Its namespace and name.
    pub fn id(&self) -> &ModelId {
        &self.effective.id
    }
}

/// What the folder says at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The Models to serve, in the order of their names.
    pub models: Vec<Listed>,
    /// The LoRA adapters to serve, in the order of their names.
    pub adapters: Vec<ListedAdapter>,
    /// What is wrong with the files as they are now, for people: `file:line: message`. Not logged
    /// here, so that whoever takes the contents tells it together with what else is wrong.
    pub complaints: Vec<String>,
}

/// Why a folder cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It is not there, is no folder, or may not be read.
    #[error("cannot read the folder of Models {folder}; make it, or name another", folder = folder.display())]
    Unreadable {
        /// The folder as it was named.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system has no thread to watch it with.
    #[error("cannot watch the folder of Models")]
    Unwatched(#[source] io::Error),
}
