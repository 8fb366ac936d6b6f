//! Settings of the form `name=value` that may be given several times.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::reader::Reader;
use super::size::Size;

impl<E: Fn(&str) -> Option<String>> Reader<'_, E> {
    /// `group=24Gi`, in MiB.
    pub(super) fn budgets(
        &mut self,
        name: &'static str,
        flags: &[String],
    ) -> BTreeMap<String, u64> {
        self.pairs(name, flags, |text| {
            let Size(bytes) = text.parse::<Size>().map_err(|error| error.to_string())?;
            match bytes >> 20 {
                0 => Err(format!("`{text}` is less than 1Mi")),
                mebibytes => Ok(mebibytes),
            }
        })
    }

    /// `claim=/folder`.
    pub(super) fn claims(
        &mut self,
        name: &'static str,
        flags: &[String],
    ) -> BTreeMap<String, PathBuf> {
        self.pairs(name, flags, |text| match PathBuf::from(text) {
            path if path.is_absolute() => Ok(path),
            _ => Err(format!("`{text}` is not an absolute path")),
        })
    }

    /// Plain names.
    pub(super) fn names(&mut self, name: &'static str, flags: &[String]) -> Vec<String> {
        let (texts, _) = self.several(name, flags);
        let trimmed = texts.into_iter().map(|text| text.trim().to_owned());
        trimmed.filter(|text| !text.is_empty()).collect()
    }

    /// What the flags say, each once, else what the variable says, separated by commas; and which it was.
    fn several(&mut self, name: &'static str, flags: &[String]) -> (Vec<String>, String) {
        let (texts, from): (Vec<String>, String) = if flags.is_empty() {
            match self.given(name, None) {
                Some(given) => (given.text.split(',').map(str::to_owned).collect(), given.from),
                None => (Vec::new(), String::new()),
            }
        } else {
            (flags.to_vec(), format!("--{name}"))
        };
        self.show(name, texts.clone());
        (texts, from)
    }

    fn pairs<T>(
        &mut self,
        name: &'static str,
        flags: &[String],
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> BTreeMap<String, T> {
        let (texts, from) = self.several(name, flags);
        let mut pairs = BTreeMap::new();
        for text in texts {
            let pair = text.trim().split_once('=').filter(|(key, _)| !key.is_empty());
            let parsed = match pair {
                Some((key, value)) => parse(value).map(|value| (key.to_owned(), value)),
                None => Err(format!("`{text}` must be a name, = and a value")),
            };
            match parsed {
                Ok((key, value)) => {
                    if pairs.insert(key.clone(), value).is_some() {
                        self.complain(format!("{from}: `{key}` is given twice"));
                    }
                }
                Err(problem) => self.complain(format!("{from}: {problem}")),
            }
        }
        pairs
    }
}
