//! `local DIR --check`: what is wrong with the Models, told without serving anything. The settings and the files that
//! they name were read before.

use std::path::Path;

use anyhow::{Context, bail};

use super::Folder;
use super::models::Models;

/// Prints every complaint, then how many Models there are; an error where there was any complaint.
pub fn check(folder: &Path) -> anyhow::Result<()> {
    let unread = || format!("cannot open the folder of Models {}", folder.display());
    let place = folder.canonicalize().with_context(unread)?;
    let (_watch, contents) = Folder::watch(&place, |_| {})?;
    let taken = Models::default().take(contents);
    for complaint in &taken.complaints {
        println!("{complaint}");
    }
    println!("{} served from {}", taken.fleet.listed().count(), place.display());
    match taken.complaints.len() {
        0 => Ok(()),
        count => bail!("{count} to be mended"),
    }
}
