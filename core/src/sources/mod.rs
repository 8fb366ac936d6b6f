//! Where a model's weights come from: the grammar of `spec.source`, one file per scheme.
//!
//! A scheme is one file, one variant of [`Source`] and one arm of [`Scheme::grammar`]; the compiler
//! asks for the arms. The text of a source is taken literally: nothing in it is percent-decoded.
//! How a download is talked through is in [`download`].

pub mod download;
pub mod file;
pub mod huggingface;
pub mod oci;
pub mod ollama;
pub mod pvc;
pub mod weights;

mod bad_source;
mod place;
mod relative;

use std::fmt;
use std::str::FromStr;

pub use bad_source::BadSource;
pub use place::{Place, Roots};
pub use relative::RelativePath;
use strum::IntoEnumIterator;

/// A parsed `spec.source`. `Display` writes the canonical form, which parses to the same value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(Scheme),
    derive(strum::EnumIter),
    doc = "The schemes that a source can have."
)]
pub enum Source {
    /// `HF://org/name[@revision][:path]`: a repository on the Hugging Face hub.
    HuggingFace(huggingface::Repository),
    /// `oci://host/name[:tag][@sha256:digest]`: an artifact in a registry.
    Oci(oci::Reference),
    /// `ollama://model[:tag]`: a name that Ollama pulls, or that is downloaded from where it would.
    Ollama(ollama::Reference),
    /// `file:///absolute` or `file://./relative`: weights that are on this machine.
    File(file::Location),
    /// `pvc://claim[/path]`: weights in a persistent volume claim.
    Pvc(pvc::Location),
}

/// What a scheme is called, what it looks like, and how the rest of it is read.
struct Grammar {
    /// The canonical name first, then what else is understood; compared without regard to case.
    names: &'static [&'static str],
    /// An example for error messages.
    example: &'static str,
    parse: fn(&str) -> Result<Source, BadSource>,
}

impl Scheme {
    fn grammar(self) -> Grammar {
        match self {
            Self::HuggingFace => Grammar {
                names: &["HF", "huggingface"],
                example: huggingface::EXAMPLE,
                parse: |rest| huggingface::Repository::parse(rest).map(Source::HuggingFace),
            },
            Self::Oci => Grammar {
                names: &["oci", "oras"],
                example: oci::EXAMPLE,
                parse: |rest| oci::Reference::parse(rest).map(Source::Oci),
            },
            Self::Ollama => Grammar {
                names: &["ollama"],
                example: ollama::EXAMPLE,
                parse: |rest| ollama::Reference::parse(rest).map(Source::Ollama),
            },
            Self::File => Grammar {
                names: &["file"],
                example: file::EXAMPLE,
                parse: |rest| file::Location::parse(rest).map(Source::File),
            },
            Self::Pvc => Grammar {
                names: &["pvc"],
                example: pvc::EXAMPLE,
                parse: |rest| pvc::Location::parse(rest).map(Source::Pvc),
            },
        }
    }

    /// The scheme as written before `://`, in its canonical form.
    pub fn name(self) -> &'static str {
        self.grammar().names.first().copied().unwrap_or_default()
    }

    /// A source of this scheme, for documentation and error messages.
    pub fn example(self) -> &'static str {
        self.grammar().example
    }

    /// The scheme called `name`, in any case, by its canonical name or an alias.
    pub fn named(name: &str) -> Option<Self> {
        Self::iter().find(|scheme| {
            scheme.grammar().names.iter().any(|known| known.eq_ignore_ascii_case(name))
        })
    }
}

impl Source {
    /// The scheme of this source.
    pub fn scheme(&self) -> Scheme {
        Scheme::from(self)
    }
}

impl FromStr for Source {
    type Err = BadSource;

    fn from_str(text: &str) -> Result<Self, BadSource> {
        if text.is_empty() {
            return Err(BadSource::Empty);
        }
        // A slash at the end is dropped, so a space before it would then stand there.
        let spaced =
            text.trim() != text || text.trim_end_matches('/').ends_with(char::is_whitespace);
        if spaced || text.chars().any(char::is_control) {
            return Err(BadSource::Unprintable { text: text.to_owned() });
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(bad_source::without_scheme(text));
        };
        let scheme =
            Scheme::named(scheme).ok_or_else(|| bad_source::unknown_scheme(scheme, rest))?;
        (scheme.grammar().parse)(rest)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://", self.scheme().name())?;
        match self {
            Self::HuggingFace(repository) => repository.fmt(formatter),
            Self::Oci(reference) => reference.fmt(formatter),
            Self::Ollama(reference) => reference.fmt(formatter),
            Self::File(location) => location.fmt(formatter),
            Self::Pvc(location) => location.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests;
