//! What a folder is known to hold: `.flexinfer/record.json`. Read at a restart to skip what is
//! whole, without asking the hub, and to go on at the commit that was begun with.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The record of one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The source, with its revision, that the folder is for.
    pub(crate) source: String,
    /// The commit that all files are of.
    pub(crate) commit: Option<String>,
    /// The files that were checked, by path.
    pub(crate) files: BTreeMap<String, Saved>,
    /// For each selection that is whole, the paths it is made of.
    pub(crate) whole: BTreeMap<String, Vec<String>>,
}

/// A file that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) size: u64,
    /// What it was checked against, if the hub said something.
    pub(crate) digest: Option<String>,
}

impl Record {
    /// Reads the record at `path` if it is one of `source`. One that cannot be read is none: the
    /// files are then looked at again.
    pub(crate) fn read(path: &Path, source: &str) -> Self {
        let empty = Self { source: source.to_owned(), ..Self::default() };
        let Ok(text) = fs::read(path) else { return empty };
        match serde_json::from_slice::<Self>(&text) {
            Ok(record) if record.source == source => record,
            Ok(_) => empty,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a damaged record is begun anew");
                empty
            }
        }
    }

    /// Writes the record, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let text = serde_json::to_vec_pretty(self)?;
        let temporary = folder.join(format!("record.{}", crate::claim::owner()));
        let mut file = fs::File::create(&temporary)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    }
}
