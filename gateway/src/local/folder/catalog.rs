//! Which file defines which Model, through edits, mistakes and removals. No file is touched here.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use flexinfer_core::ids::ModelId;
use flexinfer_core::manifest::{ParsedAdapter, ParsedModel};

use super::adapters::Adapters;
use super::{Contents, Listed};

/// What was understood of one file.
#[derive(Debug, Default)]
pub(super) struct Understood {
    /// The Models it defines, each once.
    pub(super) models: Vec<ParsedModel>,
    /// The LoRA adapters it defines.
    pub(super) adapters: Vec<ParsedAdapter>,
    /// What should be changed and does no harm.
    pub(super) warnings: Vec<String>,
    /// What could not be understood.
    pub(super) errors: Vec<String>,
}

/// Everything that the files define.
#[derive(Default)]
pub(super) struct Catalog {
    files: BTreeMap<PathBuf, Definitions>,
    adapters: Adapters,
    /// The file that each Model is served from, while several may define it.
    owners: HashMap<ModelId, PathBuf>,
}

#[derive(Default)]
struct Definitions {
    models: Vec<Listed>,
    complaints: Vec<String>,
}

impl Catalog {
    /// Takes in what a file says now.
    ///
    /// A file with an error in it keeps the Models that it defined before and that are not
    /// understood now: one of them is what the error is about.
    pub(super) fn update(&mut self, file: &Path, understood: Understood) {
        self.adapters.update(file, understood.adapters, !understood.errors.is_empty());
        let listed = |parsed: ParsedModel| Listed {
            model: parsed.model.into(),
            effective: parsed.effective,
            file: file.to_path_buf(),
            line: parsed.line,
        };
        let mut models: Vec<Listed> = understood.models.into_iter().map(listed).collect();
        let mut complaints = understood.warnings;
        if !understood.errors.is_empty() {
            complaints.extend(understood.errors);
            let mut kept = self.files.remove(file).unwrap_or_default().models;
            let understood: HashSet<_> = models.iter().map(Listed::id).collect();
            kept.retain(|before| !understood.contains(before.id()));
            if !kept.is_empty() {
                let names: Vec<_> = kept.iter().map(|kept| kept.id().to_string()).collect();
                let (file, names) = (file.display(), names.join(", "));
                complaints.push(format!("{file}: until this is mended, {names} stays as it was"));
            }
            models.extend(kept);
        }
        self.files.insert(file.to_path_buf(), Definitions { models, complaints });
    }

    /// Takes in that a file is there and cannot be read: it keeps what it defined.
    pub(super) fn unreadable(&mut self, file: &Path, why: &str) {
        let complaint = format!("{}: cannot be read: {why}", file.display());
        self.update(file, Understood { errors: vec![complaint], ..Understood::default() });
    }

    /// Takes in that a file is gone.
    pub(super) fn remove(&mut self, file: &Path) {
        self.files.remove(file);
        self.adapters.remove(file);
    }

    /// What all files together say. A Model that two files define stays with the file it came from
    /// first, for as long as that one defines it.
    pub(super) fn contents(&mut self) -> Contents {
        let mut defined: BTreeMap<&ModelId, Vec<&Listed>> = BTreeMap::new();
        let mut complaints: Vec<String> = Vec::new();
        for definitions in self.files.values() {
            complaints.extend(definitions.complaints.iter().cloned());
            for listed in &definitions.models {
                defined.entry(listed.id()).or_default().push(listed);
            }
        }
        let mut models = Vec::new();
        for (id, mut all) in defined {
            let owner = self.owners.get(id);
            let first = all.iter().position(|listed| Some(&listed.file) == owner).unwrap_or(0);
            let served = all.swap_remove(first);
            complaints.extend(all.iter().map(|other| told_twice(other, served)));
            models.push(served.clone());
        }
        self.owners =
            models.iter().map(|listed| (listed.id().clone(), listed.file.clone())).collect();
        let adapters = self.adapters.contents(&mut complaints);
        Contents { models, adapters, complaints }
    }
}

fn told_twice(other: &Listed, served: &Listed) -> String {
    format!(
        "{}:{}: the Model {} is defined in {}:{} already, and that one is served; remove one",
        other.file.display(),
        other.line,
        other.id(),
        served.file.display(),
        served.line
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed;
    use super::*;

    fn says(models: &[(&str, i32)], errors: &[&str]) -> Understood {
        let models = models.iter().map(|(name, priority)| parsed(name, *priority, 1)).collect();
        let errors = errors.iter().map(|&error| error.to_owned()).collect();
        Understood { models, errors, ..Understood::default() }
    }

    /// The Models as `name=priority/file`.
    fn served(contents: &Contents) -> Vec<String> {
        let show = |listed: &Listed| {
            let effective = &listed.effective;
            format!("{}={}/{}", effective.id.name, effective.priority, listed.file.display())
        };
        contents.models.iter().map(show).collect()
    }

    #[test]
    fn files_come_change_and_go() {
        let mut catalog = Catalog::default();
        catalog.update(Path::new("a"), says(&[("llama", 1), ("qwen", 1)], &[]));
        assert_eq!(served(&catalog.contents()), ["llama=1/a", "qwen=1/a"]);
        catalog.update(Path::new("a"), says(&[("llama", 1), ("qwen", 2)], &[]));
        assert_eq!(served(&catalog.contents()), ["llama=1/a", "qwen=2/a"]);
        catalog.remove(Path::new("a"));
        assert_eq!(served(&catalog.contents()), [""; 0]);
        catalog.update(Path::new("b"), says(&[("qwen", 3)], &[]));
        assert_eq!(served(&catalog.contents()), ["qwen=3/b"]);
    }

    #[test]
    fn a_broken_edit_keeps_the_old_version_and_says_so() {
        let mut catalog = Catalog::default();
        catalog.update(Path::new("a"), says(&[("llama", 1), ("qwen", 1)], &[]));
        catalog.contents();
        catalog.update(Path::new("a"), says(&[("llama", 2)], &["a:9: unknown field"]));
        let contents = catalog.contents();
        assert_eq!(served(&contents), ["llama=2/a", "qwen=1/a"]);
        assert_eq!(
            contents.complaints,
            ["a:9: unknown field", "a: until this is mended, default/qwen stays as it was"]
        );
        catalog.unreadable(Path::new("a"), "Permission denied");
        assert_eq!(served(&catalog.contents()), ["llama=2/a", "qwen=1/a"]);
        catalog.update(Path::new("a"), says(&[("llama", 2)], &[]));
        assert_eq!(served(&catalog.contents()), ["llama=2/a"]);
    }

    #[test]
    fn of_two_files_with_one_model_the_first_stays_until_it_lets_go() {
        let mut catalog = Catalog::default();
        catalog.update(Path::new("b"), says(&[("qwen", 1)], &[]));
        catalog.contents();
        catalog.update(Path::new("a"), says(&[("qwen", 2)], &[]));
        let contents = catalog.contents();
        assert_eq!(served(&contents), ["qwen=1/b"]);
        let told = "a:1: the Model default/qwen is defined in b:1 already, and that one is \
                    served; remove one";
        assert_eq!(contents.complaints, [told]);
        catalog.remove(Path::new("b"));
        let contents = catalog.contents();
        assert_eq!(served(&contents), ["qwen=2/a"]);
        assert_eq!(contents.complaints, [""; 0]);
    }
}
