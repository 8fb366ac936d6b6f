//! The model that a query names, for the APIs that have it there, and its engine's own name in the same
//! place. Every other byte of the query stays as it is.

use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::rejection::Rejection;

const MODEL: &str = "model";

/// What may stand in a query as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The model that `query` names, decoded once; `+` is a blank, as forms write it.
pub fn model(query: &str) -> Result<Option<String>, Rejection> {
    let mut names = spans(query).filter_map(|span| query.get(span)).map(decoded);
    let Some(first) = names.next() else { return Ok(None) };
    match names.find(|name| *name != first) {
        Some(second) => Err(Rejection::ConflictingModels { first, second }),
        None if first.is_empty() => {
            Err(Rejection::InvalidField { field: MODEL, expected: "a string that is not empty" })
        }
        None => Ok(Some(first)),
    }
}

/// `query` with `name` wherever it names its model.
pub fn with_model(query: &str, name: &str) -> String {
    let mut written = String::with_capacity(query.len() + name.len());
    let mut done = 0;
    for span in spans(query) {
        written.push_str(query.get(done..span.start).unwrap_or_default());
        written.extend(utf8_percent_encode(name, ESCAPED));
        done = span.end;
    }
    written.push_str(query.get(done..).unwrap_or_default());
    written
}

/// Where the values of `model` stand.
fn spans(query: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    query.split('&').filter_map(move |pair| {
        let at = start;
        start += pair.len() + 1;
        let (key, value) = pair.split_once('=')?;
        let value_at = at + key.len() + 1;
        (decoded(key) == MODEL).then(|| value_at..value_at + value.len())
    })
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_its_model_once_whatever_else_it_says() {
        let named = |query| model(query).expect("clear");
        assert_eq!(named("model=m"), Some("m".into()));
        assert_eq!(named("a=1&model=org%2Fname&b"), Some("org/name".into()));
        assert_eq!(named("mod%65l=two+words"), Some("two words".into()));
        assert_eq!(named("model=org%252Fname"), Some("org%2Fname".into()));
        assert_eq!(named("models=m&amodel=m&model"), None);
        assert_eq!(named(""), None);
        assert_eq!(named("model=m&model=%6d"), Some("m".into()));
    }

    #[test]
    fn two_models_in_one_query_are_refused() {
        assert!(matches!(model("model=a&model=b"), Err(Rejection::ConflictingModels { .. })));
        assert!(matches!(model("model="), Err(Rejection::InvalidField { .. })));
    }

    #[test]
    fn only_the_models_value_is_changed() {
        assert_eq!(with_model("a=%20&model=m&b=+", "org/x y"), "a=%20&model=org%2Fx%20y&b=+");
        assert_eq!(with_model("model=m&mod%65l=m", "n"), "model=n&mod%65l=n");
        assert_eq!(with_model("a=1&&", "n"), "a=1&&");
    }
}
