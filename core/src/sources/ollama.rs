//! `ollama://[host/][namespace/]model[:tag]`: a name that Ollama pulls by itself. For an engine that reads
//! GGUF files it is an artifact in Ollama's registry, downloaded like any other. Letter case is kept; a missing
//! tag is Ollama's own `latest`.

use std::fmt;

use super::oci::MODEL_FILE;
use super::{BadSource, RelativePath};

/// Where names without a host are pulled from.
const REGISTRY: &str = "registry.ollama.ai";

pub(super) const EXAMPLE: &str = "ollama://[host/][namespace/]model[:tag]";

/// A name in Ollama's library, or on the registry that its first part names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// `model`, `namespace/model` or `host/namespace/model`.
    pub name: String,
    /// The tag as written; `None` is `latest`.
    pub tag: Option<String>,
}

impl Reference {
    /// Reads what stands behind `ollama://`.
    pub fn parse(rest: &str) -> Result<Self, BadSource> {
        let model_begins = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (path, model) = rest.split_at(model_begins);
        let (model, tag) = match model.split_once(':') {
            Some((model, tag)) => (model, Some(word("the tag behind `:`", tag)?)),
            None => (model, None),
        };
        let model = word("the model's name", model)?;
        let parts = path.split_terminator('/').collect::<Vec<_>>();
        if parts.len() > 2 {
            return Err(BadSource::BadPart {
                part: "the name",
                text: rest.to_owned(),
                problem: "has too many parts",
                example: EXAMPLE,
            });
        }
        for (index, part) in parts.iter().enumerate() {
            let names_a_host = index == 0 && parts.len() == 2;
            match part.split_once(':') {
                Some((host, port)) if names_a_host && port.parse::<u16>().is_ok() => {
                    word("the host", host)?;
                }
                _ => {
                    word(if names_a_host { "the host" } else { "the namespace" }, part)?;
                }
            }
        }
        Ok(Self { name: format!("{path}{model}"), tag })
    }

    /// The tag that is asked for.
    pub fn revision(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// The name with its tag, as Ollama lists the model once it is pulled.
    pub fn tagged(&self) -> String {
        format!("{}:{}", self.name, self.revision())
    }

    /// The registry and the repository that Ollama pulls this name from.
    pub fn in_registry(&self) -> (String, String) {
        let parts = self.name.split('/').collect::<Vec<_>>();
        let (host, path) = match parts.as_slice() {
            [host, namespace, model] => (*host, format!("{namespace}/{model}")),
            [model] => (REGISTRY, format!("library/{model}")),
            _ => (REGISTRY, self.name.clone()),
        };
        (host.to_owned(), path)
    }

    /// What the weights are called once they are downloaded: in the registry they have no name.
    pub fn model_file() -> RelativePath {
        RelativePath::plain(MODEL_FILE)
    }
}

fn word(part: &'static str, text: &str) -> Result<String, BadSource> {
    if text.is_empty() {
        return Err(BadSource::Missing { part, example: EXAMPLE });
    }
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if !text.chars().all(allowed) || text.starts_with(['.', '-']) {
        return Err(BadSource::BadPart {
            part,
            text: text.to_owned(),
            problem: "may only have letters, digits, `-`, `_` and dots, and begins with none of these",
            example: EXAMPLE,
        });
    }
    Ok(text.to_owned())
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match &self.tag {
            Some(tag) => write!(formatter, ":{tag}"),
            None => Ok(()),
        }
    }
}
