//! `cargo xtask generate`: writes the files that are made from the sources. With `--check` it names
//! the stale ones and changes nothing; `cargo xtask check` asks the same.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::{program, workspace};

/// The folders that hold definitions and nothing else: those of the chart are installed, whatever they are.
const DEFINITIONS: [&str; 2] = ["crds/yaml", "chart/files/crds"];

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

/// One line for each file that is not what the sources make of it, and for each definition that they make no more.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let made = definitions()?;
    let stale = made.iter().filter(|(path, content)| {
        fs::read_to_string(workspace::root().join(path)).ok().as_ref() != Some(content)
    });
    let advice = "stale; run `cargo xtask generate` and commit the result";
    let stale = stale.map(|(path, _)| format!("{path}: {advice}"));
    let there = DEFINITIONS.iter().map(|folder| files_in(folder)).collect::<Result<Vec<_>>>()?;
    Ok(stale.chain(left_over(&made, &there.concat())).collect())
}

/// One line for each of the files that are `there` and that nothing makes.
fn left_over(made: &BTreeMap<String, String>, there: &[String]) -> Vec<String> {
    let left = there.iter().filter(|path| !made.contains_key(*path));
    left.map(|path| format!("{path}: no source makes it any more; remove it")).collect()
}

/// The files in a folder of the repository, by their place there.
fn files_in(folder: &str) -> Result<Vec<String>> {
    let entries = fs::read_dir(workspace::root().join(folder));
    let entries = entries.with_context(|| format!("cannot read {folder}"))?;
    let path = |name: &std::ffi::OsStr| format!("{folder}/{}", name.to_string_lossy());
    entries.map(|entry| Ok(path(&entry?.file_name()))).collect()
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
    let files = serde_json::from_str(&printed).context("the files are not printed as JSON")?;
    Ok(with_the_charts(files))
}

/// The same definitions once more as files of the chart's own: whoever has that folder has a chart, and what packages it
/// follows no link out of it.
fn with_the_charts(files: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let definitions = files.iter().filter_map(|(path, content)| {
        let name = path.strip_prefix("crds/yaml/")?;
        Some((format!("chart/files/crds/{name}"), content.clone()))
    });
    let of_chart = definitions.collect::<BTreeMap<_, _>>();
    files.into_iter().chain(of_chart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_has_files_of_its_own_with_each_definition() {
        let file = |path: &str, content: &str| (path.to_owned(), content.to_owned());
        let files = [file("crds/yaml/models.yaml", "definition"), file("docs/page.md", "page")];
        let all = with_the_charts(files.clone().into());
        assert_eq!(all.get("chart/files/crds/models.yaml").map(String::as_str), Some("definition"));
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn a_definition_that_is_no_longer_made_is_named() {
        let made = [("crds/yaml/models.yaml".to_owned(), String::new())].into();
        let there = ["crds/yaml/models.yaml", "chart/files/crds/old.yaml"].map(str::to_owned);
        let left = left_over(&made, &there);
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left.iter().all(|line| line.contains("chart/files/crds/old.yaml")), "{left:?}");
    }

    #[test]
    fn no_link_leads_out_of_the_chart() {
        fn links(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let inner = entries.flat_map(|entry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => links(&entry.path()),
                Ok(kind) if kind.is_symlink() => vec![entry.path()],
                _ => Vec::new(),
            });
            inner.collect()
        }
        assert_eq!(links(&workspace::root().join("chart")), [""; 0].map(std::path::PathBuf::from));
    }
}
