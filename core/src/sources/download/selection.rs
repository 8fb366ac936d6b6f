//! Which files of a repository a Model needs: `config.hfAllowPatterns`, `hfIgnorePatterns`,
//! `hfRevision`, `ggufFile` (or `modelFile`) and a relative `mmproj`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::super::huggingface::{Repository, checked_revision};
use super::super::{BadSource, RelativePath};
use super::listing::Listed;
use super::pattern;
use crate::activation::{Failure, Reason};

/// What is chosen from.
#[derive(Clone, Copy, Debug)]
pub(super) struct From<'a> {
    /// What it is called in messages.
    pub(super) id: &'a str,
    /// The file or folder of it that the source itself names.
    pub(super) within: Option<&'a RelativePath>,
}

/// What is wanted of a repository. The default is all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// `hfRevision`: used where the source names none; default `main`.
    pub revision: Option<String>,
    /// `hfAllowPatterns`: if any, only what matches one of them.
    pub allow: Vec<String>,
    /// `hfIgnorePatterns`: never what matches one of these, unless it is named outright.
    pub ignore: Vec<String>,
    /// `ggufFile` or `modelFile`: the file that the engine is given. With its further parts, if it
    /// is the first of several; and alone, where nothing is allowed by pattern.
    pub file: Option<RelativePath>,
    /// Files needed beside it, such as `mmproj`.
    pub beside: Vec<RelativePath>,
}

impl Selection {
    /// Reads the keys of a Model's `config`. Patterns lose a leading slash and duplicates; those
    /// with `..` are dropped, as they can match nothing.
    pub fn from_config(config: &Map<String, Value>) -> Result<Self, BadSource> {
        let file = match text(config, "ggufFile")? {
            Some(file) => Some(file),
            None => text(config, "modelFile")?,
        };
        let projector = text(config, "mmproj")?.filter(|path| !path.starts_with('/'));
        Ok(Self {
            revision: text(config, "hfRevision")?.map(checked_revision).transpose()?,
            allow: patterns(config, "hfAllowPatterns")?,
            ignore: patterns(config, "hfIgnorePatterns")?,
            file: file.map(RelativePath::parse).transpose()?,
            beside: projector.map(RelativePath::parse).transpose()?.into_iter().collect(),
        })
    }

    /// The revision to ask `repository` for.
    pub(super) fn revision_of(&self, repository: &Repository) -> Result<String, BadSource> {
        match (&repository.revision, &self.revision) {
            (Some(source), Some(config)) if source != config => Err(BadSource::TwoRevisions {
                source_revision: source.clone(),
                config_revision: config.clone(),
            }),
            (Some(revision), _) | (None, Some(revision)) => Ok(revision.clone()),
            (None, None) => Ok("main".to_owned()),
        }
    }

    /// What the engine is given once the source lies in `folder`; `named` is the file or folder that the source
    /// itself names.
    pub fn model_path(&self, named: Option<&RelativePath>, folder: &Path) -> PathBuf {
        match self.file.as_ref().or(named) {
            Some(path) => path.below(folder),
            None => folder.to_path_buf(),
        }
    }

    /// One text that is equal for equal wishes, for a record of what has been fetched.
    pub fn fingerprint(&self, within: Option<&RelativePath>) -> String {
        let path = within.map(RelativePath::as_str);
        let file = self.file.as_ref().map(RelativePath::as_str);
        let beside = self.beside.iter().map(RelativePath::as_str).collect::<Vec<_>>();
        serde_json::json!([path, file, beside, self.allow, self.ignore]).to_string()
    }

    /// The files of `listed` that are wanted, or why that cannot be.
    pub(super) fn choose(
        &self,
        from: &From<'_>,
        listed: &[Listed],
    ) -> Result<Vec<Listed>, Failure> {
        for named in self.file.iter().chain(&self.beside).chain(from.within) {
            let is_there = |listed: &Listed| is_or_is_below(&listed.path, named);
            if !listed.iter().any(is_there) {
                return Err(missing(from.id, named, listed));
            }
        }
        let chosen = listed
            .iter()
            .filter(|listed| self.wants(from.within, &listed.path))
            .cloned()
            .collect::<Vec<_>>();
        if chosen.is_empty() {
            return Err(Failure::new(
                Reason::BadSource,
                format!(
                    "no file of {} is left by config.hfAllowPatterns {:?} and \
                     config.hfIgnorePatterns {:?}; loosen them",
                    from.id, self.allow, self.ignore
                ),
            ));
        }
        Ok(chosen)
    }

    fn wants(&self, within: Option<&RelativePath>, path: &RelativePath) -> bool {
        let mut named = self.file.iter().chain(&self.beside);
        if named.any(|named| path == named || is_part_of(path, named)) {
            return true;
        }
        if self.ignore.iter().any(|pattern| pattern::matches(pattern, path.as_str())) {
            return false;
        }
        if let Some(within) = within
            && (is_or_is_below(path, within) || is_part_of(path, within))
        {
            return self.allow.is_empty() || self.allows(path);
        }
        match (self.allow.is_empty(), within, &self.file) {
            (false, None, _) => self.allows(path),
            (true, None, None) => true,
            _ => false,
        }
    }

    fn allows(&self, path: &RelativePath) -> bool {
        self.allow.iter().any(|pattern| pattern::matches(pattern, path.as_str()))
    }
}

fn is_or_is_below(path: &RelativePath, place: &RelativePath) -> bool {
    let rest = path.as_str().strip_prefix(place.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether `path` is a further part of the GGUF `first`: `x-00002-of-00003.gguf` of
/// `x-00001-of-00003.gguf`.
fn is_part_of(path: &RelativePath, first: &RelativePath) -> bool {
    let split = |path: &RelativePath| -> Option<(String, String)> {
        let (stem, count) = path.as_str().strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (stem, number) = stem.rsplit_once('-')?;
        let is_number = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
        (is_number(number) && is_number(count)).then(|| (stem.to_owned(), count.to_owned()))
    };
    split(first).is_some_and(|whole| split(path) == Some(whole))
}

fn missing(id: &str, named: &RelativePath, listed: &[Listed]) -> Failure {
    let wanted = named.file_name().to_ascii_lowercase();
    let distance = |path: &RelativePath| {
        strsim::damerau_levenshtein(&wanted, &path.file_name().to_ascii_lowercase())
    };
    let nearest = listed.iter().map(|listed| &listed.path).min_by_key(|path| distance(path));
    let hint = nearest.map_or_else(
        || "the repository is empty".to_owned(),
        |nearest| format!("the nearest name there is `{nearest}`"),
    );
    Failure::new(Reason::BadSource, format!("{id} has no file or folder `{named}`; {hint}"))
}

fn text<'a>(
    config: &'a Map<String, Value>,
    key: &'static str,
) -> Result<Option<&'a str>, BadSource> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(BadSource::BadKey { key, wanted: "text" }),
    }
}

fn patterns(config: &Map<String, Value>, key: &'static str) -> Result<Vec<String>, BadSource> {
    let wrong = BadSource::BadKey { key, wanted: "a list of patterns such as [\"*.json\"]" };
    let given = match config.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(many)) => {
            many.iter().map(Value::as_str).collect::<Option<Vec<_>>>().ok_or(wrong)?
        }
        Some(_) => return Err(wrong),
    };
    let mut kept = Vec::<String>::new();
    for pattern in given {
        let pattern = pattern.trim().trim_start_matches('/');
        let useful = !pattern.is_empty() && !pattern.contains("..");
        if useful && !kept.iter().any(|known| known == pattern) {
            kept.push(pattern.to_owned());
        }
    }
    Ok(kept)
}
