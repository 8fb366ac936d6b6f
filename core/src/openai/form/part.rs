//! The headers of a form's part.

use crate::openai::content_type::{Parameters, split};

/// Whether these headers, from the line end before them on, are lines of a name and a value each. What is
/// not, some readers take for the end of the headers, and read the rest as another part.
pub(super) fn well_formed(headers: &[u8]) -> bool {
    let lines = String::from_utf8_lossy(headers);
    let lines = lines.strip_prefix("\r\n").unwrap_or(&lines).split("\r\n");
    let named = |line: &str| line.split_once(':').is_some_and(|(name, _)| !name.trim().is_empty());
    lines.into_iter().all(|line| named(line) && !line.contains(['\r', '\n']))
}

/// The fields that are read, the one that decides most last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Stream,
    Model,
}

impl Field {
    /// The name that it has in a part's disposition.
    fn named(name: &str) -> Option<Self> {
        match name {
            "model" => Some(Self::Model),
            "stream" => Some(Self::Stream),
            _ => None,
        }
    }
}

/// What a part is, as its headers say.
pub(super) enum Kind {
    /// A field that is read. A file is no field, whatever its name.
    Read(Field),
    /// A file.
    File,
    /// Another field, or nothing that has a name.
    Other,
    /// It has a disposition, and a form's parts have another.
    NoFormData,
    /// Its name is coded or cut in pieces (`name*=utf-8''model`), which some readers know and others do not.
    CodedName,
}

/// What a part with these headers is.
pub(super) fn kind(headers: &[u8]) -> Kind {
    let headers = String::from_utf8_lossy(headers);
    let disposition = headers.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let Some((kind, parameters)) = disposition.map(split) else {
        return Kind::Other;
    };
    if !kind.eq_ignore_ascii_case("form-data") {
        return Kind::NoFormData;
    }
    let (mut field, mut file) = (None, false);
    for (name, value) in Parameters(parameters) {
        if name == "name" {
            // Readers disagree on which of two names counts; the model must be seen either way.
            field = field.max(Field::named(&value));
        }
        if name.starts_with("name*") {
            return Kind::CodedName;
        }
        file |= name == "filename" || name == "filename*";
    }
    match field {
        _ if file => Kind::File,
        Some(field) => Kind::Read(field),
        None => Kind::Other,
    }
}
