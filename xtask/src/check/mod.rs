//! `cargo xtask check`: what the compiler does not look at. Every complaint is printed, not only the first.

mod arrows;
mod decisions;
mod libraries;
mod links;
mod metrics;
mod orphans;
mod purity;
mod tree;

use anyhow::{Result, bail};

use crate::{generate, workspace};

/// A file past this many lines is named, for its reviewer to ask why; it does not fail the check.
const LONG_FILE: usize = 400;

pub(crate) fn run() -> Result<()> {
    let metadata = workspace::metadata()?;
    let files = tree::files()?;
    let mut complaints = arrows::complaints(&metadata);
    complaints.extend(arrows::differences(&files));
    complaints.extend(orphans::complaints(&metadata, &files));
    complaints.extend(libraries::complaints(&files));
    complaints.extend(purity::complaints(&files));
    complaints.extend(links::complaints(&files));
    complaints.extend(decisions::complaints(&files));
    complaints.extend(metrics::complaints(&files));
    complaints.extend(generate::complaints()?);
    for file in files.iter().filter(|file| file.is_rust() && file.lines() > LONG_FILE) {
        println!("warning: {} has {} lines; does it hold one idea?", file.path, file.lines());
    }
    for complaint in &complaints {
        println!("error: {complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} complaint(s)", complaints.len());
    }
    println!("arrows, files, purity, generated files, metrics, links and decisions are in order");
    Ok(())
}
