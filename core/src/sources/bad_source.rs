//! Why the text of a source is refused, and what was probably meant.

use strum::IntoEnumIterator;

use super::Scheme;

/// A source that cannot be understood. The message says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSource {
    /// Nothing was written.
    #[error("the source is empty; write for example {}", Scheme::HuggingFace.example())]
    Empty,
    /// Spaces around it, or control characters in it.
    #[error("the source {text:?} has spaces around it or control characters in it; remove them")]
    Unprintable { text: String },
    /// No `://`.
    #[error("the source `{text}` has no scheme; write {suggestion}")]
    NoScheme { text: String, suggestion: String },
    /// A scheme that nobody here knows.
    #[error("the source scheme `{scheme}://` is not known; {suggestion}")]
    UnknownScheme { scheme: String, suggestion: String },
    /// A part that must be there is missing.
    #[error("the source lacks {part}; write it as {example}")]
    Missing { part: &'static str, example: &'static str },
    /// A part that cannot be what it says.
    #[error("{part} `{text}` in the source {problem}; write it as {example}")]
    BadPart { part: &'static str, text: String, problem: &'static str, example: &'static str },
    /// `..`, `.` or nothing between two slashes.
    #[error("the path `{path}` {problem}")]
    BadPath { path: String, problem: &'static str },
    /// Two places of the Model name different revisions.
    #[error(
        "the source names the revision `{source_revision}` and config.hfRevision names \
         `{config_revision}`; keep one of them"
    )]
    TwoRevisions { source_revision: String, config_revision: String },
    /// A key of `config` has the wrong type.
    #[error("config.{key} must be {wanted}")]
    BadKey { key: &'static str, wanted: &'static str },
}

/// The refusal of a text without `://`, with what it was probably meant to be.
pub(super) fn without_scheme(text: &str) -> BadSource {
    let suggestion = if text.starts_with('/') {
        format!("file://{text}")
    } else if text.starts_with("./") {
        format!("file://{text} for a path beside the model's file")
    } else if let Some((scheme, rest)) = text.split_once(':')
        && let Some(scheme) = Scheme::named(scheme)
    {
        format!("{}://{}", scheme.name(), rest.trim_start_matches('/'))
    } else if text.split('/').count() == 2 {
        format!("HF://{text} if it is a repository on the Hugging Face hub")
    } else {
        format!("one of {}", examples())
    };
    BadSource::NoScheme { text: text.to_owned(), suggestion }
}

/// The refusal of a scheme that is not known, with the nearest that is.
pub(super) fn unknown_scheme(scheme: &str, rest: &str) -> BadSource {
    let lower = scheme.to_ascii_lowercase();
    let hub_page = rest.strip_prefix("huggingface.co/").or_else(|| rest.strip_prefix("hf.co/"));
    let nearest = Scheme::iter()
        .flat_map(|known| known.grammar().names)
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase()), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= (name.len() / 2).min(2));
    let suggestion = match (hub_page, nearest) {
        (Some(page), _) => format!("a page of the Hugging Face hub is written HF://{page}"),
        (None, Some((_, name))) => format!("did you mean {name}://{rest}?"),
        (None, None) => format!("write one of {}", examples()),
    };
    BadSource::UnknownScheme { scheme: scheme.to_owned(), suggestion }
}

fn examples() -> String {
    Scheme::iter().map(Scheme::example).collect::<Vec<_>>().join(", ")
}
