//! Where the binaries of this workspace are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder that was given, else that of this program.
pub(crate) fn folder(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = given {
        return Ok(folder.to_path_buf());
    }
    let program = std::env::current_exe().context("this program does not know where it is")?;
    program.parent().map(Path::to_path_buf).context("this program is in no folder")
}
