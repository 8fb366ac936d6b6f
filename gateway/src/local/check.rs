//! `local DIR --check`: what is wrong with the keys file and the Models, told without serving anything.
//! The settings themselves were read before.

use std::path::Path;

use anyhow::{Context, bail};

use super::Folder;
use super::models::Models;
use crate::rules::Rules;
use crate::settings::LocalSettings;

/// Prints every complaint, then how many Models there are; an error where there was any complaint. Must be
/// called in a tokio runtime, as the keys file is read as ever.
pub fn check(folder: &Path, settings: &LocalSettings) -> anyhow::Result<()> {
    Rules::new(&settings.serve.rules)?;
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
