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
