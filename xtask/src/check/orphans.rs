//! Rust files that no `mod` line reaches: they compile nowhere and rot unseen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::tree::File;
use crate::workspace;

pub(crate) fn complaints(metadata: &Value, files: &[File]) -> Vec<String> {
    let root = workspace::root();
    let targets = list(metadata, "packages").flat_map(|package| list(package, "targets"));
    let roots = targets.filter_map(|target| target.get("src_path").and_then(Value::as_str));
    let roots = roots.filter_map(|path| Path::new(path).strip_prefix(&root).ok());
    let roots = roots.map(Path::to_path_buf).collect();
    let rust = files.iter().filter(|file| file.is_rust());
    orphans(roots, &rust.map(|file| (PathBuf::from(&file.path), file.text.as_str())).collect())
}

fn orphans(roots: Vec<PathBuf>, texts: &BTreeMap<PathBuf, &str>) -> Vec<String> {
    let crate_roots: BTreeSet<PathBuf> = roots.iter().cloned().collect();
    let mut reached = BTreeSet::new();
    let mut open = roots;
    while let Some(path) = open.pop() {
        let Some(text) = texts.get(&path) else { continue };
        if reached.insert(path.clone()) {
            let folder = folder_of_modules(&path, crate_roots.contains(&path));
            open.extend(modules(text).flat_map(|module| module.candidates(&path, &folder)));
        }
    }
    let orphans = texts.keys().filter(|path| !reached.contains(*path));
    orphans.map(|path| format!("{}: no mod line reaches this file", path.display())).collect()
}

/// A `mod name;` line, with the path that an attribute above it gives.
struct Module<'a> {
    name: &'a str,
    path: Option<&'a str>,
}

impl Module<'_> {
    fn candidates(&self, file: &Path, folder: &Path) -> Vec<PathBuf> {
        match self.path {
            Some(path) => vec![normal(&file.with_file_name(path))],
            None => vec![
                folder.join(format!("{}.rs", self.name)),
                folder.join(self.name).join("mod.rs"),
            ],
        }
    }
}

fn modules(text: &str) -> impl Iterator<Item = Module<'_>> {
    let mut path = None;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(given) = line.strip_prefix("#[path = \"") {
            path = given.strip_suffix("\"]");
        }
        let declaration = line.strip_suffix(';')?;
        let (before, name) = declaration.rsplit_once("mod ")?;
        let before = before.trim();
        (before.is_empty() || before.starts_with("pub"))
            .then(|| Module { name: name.trim(), path: path.take() })
    })
}

fn folder_of_modules(file: &Path, crate_root: bool) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let stem = file.file_stem().unwrap_or_default();
    if crate_root || stem == "mod" { folder } else { folder.join(stem) }
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &'static str)]) -> Vec<String> {
        let texts = files.iter().map(|(path, text)| (PathBuf::from(path), *text)).collect();
        orphans(vec!["a/src/lib.rs".into(), "a/tests/suite/main.rs".into()], &texts)
    }

    #[test]
    fn files_in_folders_beside_and_by_attribute_are_reached() {
        let files = [
            ("a/src/lib.rs", "mod one;\npub(crate) mod two;\n#[path = \"../odd.rs\"]\nmod odd;\n"),
            ("a/src/one.rs", "mod inner;\n"),
            ("a/src/one/inner.rs", ""),
            ("a/src/two/mod.rs", "#[cfg(test)]\nmod tests;\n"),
            ("a/src/two/tests.rs", ""),
            ("a/odd.rs", ""),
            ("a/tests/suite/main.rs", "mod bodies;"),
            ("a/tests/suite/bodies.rs", ""),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_a_mod_line_is_named() {
        let files = [("a/src/lib.rs", "// mod lost;\n"), ("a/src/lost.rs", "")];
        assert_eq!(found(&files), ["a/src/lost.rs: no mod line reaches this file"]);
    }
}
