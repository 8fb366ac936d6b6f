//! `cargo xtask generate`: writes the files that are made from the sources. With `--check` it names
//! the stale ones and changes nothing; `cargo xtask check` asks the same.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::{program, workspace};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail when a file is stale
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.check {
        return write();
    }
    let complaints = complaints()?;
    for complaint in &complaints {
        println!("error: {complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} stale file(s)", complaints.len());
    }
    Ok(())
}

/// One line for each file that is not what the sources make of it.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let stale = definitions()?.into_iter().filter(|(path, content)| {
        fs::read_to_string(workspace::root().join(path)).ok().as_ref() != Some(content)
    });
    let advice = "stale; run `cargo xtask generate` and commit the result";
    Ok(stale.map(|(path, _)| format!("{path}: {advice}")).collect())
}

fn write() -> Result<()> {
    for (path, content) in definitions()? {
        fs::write(workspace::root().join(&path), content)
            .with_context(|| format!("cannot write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// The files as they should be, by their place in the repository.
fn definitions() -> Result<BTreeMap<String, String>> {
    let mut cargo = program::cargo();
    cargo.args(["run", "--quiet", "--package", "flexinfer-crds", "--example", "definitions"]);
    let printed = program::output(&mut cargo)?;
    serde_json::from_str(&printed).context("the files are not printed as JSON")
}
