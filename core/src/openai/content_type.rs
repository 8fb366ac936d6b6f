//! What kind of body a `Content-Type` announces, and how to read its parameters.

use super::apis::ModelAt;
use crate::rejection::Rejection;

/// What most bodies are.
pub(super) const JSON: &str = "application/json";

/// How a body is read for its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// As a JSON object. So is a body without a content type and one that is called text or a web
    /// form: that is what curl and small clients send JSON as (HTTP-10).
    Json,
    /// As a form, with this boundary.
    Form(Boundary),
    /// Not at all: header or path must name the model.
    Opaque,
}

/// The boundary of a form: 1 to 70 of the characters that RFC 2046 allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary(String);

impl Boundary {
    /// The longest that RFC 2046 allows, in bytes.
    pub const LONGEST: usize = 70;

    fn checked(text: String) -> Result<Self, &'static str> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
        match text.len() {
            0 => Err("its boundary is empty"),
            1..=Self::LONGEST if text.ends_with(' ') => Err("its boundary ends with a space"),
            1..=Self::LONGEST if text.bytes().all(allowed) => Ok(Self(text)),
            1..=Self::LONGEST => Err("its boundary has a character that none may have"),
            _ => Err("its boundary is longer than 70 characters"),
        }
    }

    /// The boundary itself, without the dashes that it follows in a body.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl BodyKind {
    /// The kind that `content_type`, the header's value, announces.
    pub fn of(content_type: Option<&str>) -> Result<Self, Rejection> {
        let content_type = content_type.unwrap_or_default();
        // Nearly all say this and no more.
        if content_type == JSON {
            return Ok(Self::Json);
        }
        let (kind, parameters) = split(content_type);
        match Sort::of(kind) {
            Sort::Json => Ok(Self::Json),
            Sort::Form => boundary(parameters).map(Self::Form).map_err(invalid),
            Sort::Opaque => Ok(Self::Opaque),
        }
    }

    /// Refuses a body of another kind than names its model at `model_at`. Engines that do not look at
    /// content types would read what nobody has read here.
    pub fn expect(model_at: ModelAt, content_type: Option<&str>) -> Result<(), Rejection> {
        let content_type = content_type.unwrap_or_default();
        if content_type == JSON {
            return Ok(());
        }
        let (given, _) = split(content_type);
        let expected = match (model_at, Sort::of(given)) {
            (_, Sort::Json)
            | (ModelAt::Form, Sort::Form)
            | (ModelAt::Query | ModelAt::Address, _) => return Ok(()),
            (ModelAt::Json, Sort::Form | Sort::Opaque) => JSON,
            (ModelAt::Form, Sort::Opaque) => "multipart/form-data or application/json",
        };
        Err(Rejection::ContentType { given: given.to_owned(), expected })
    }
}

/// A kind of body, whatever its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Json,
    Form,
    Opaque,
}

impl Sort {
    fn of(kind: &str) -> Self {
        if kind.eq_ignore_ascii_case(JSON) {
            return Self::Json;
        }
        let kind = kind.to_ascii_lowercase();
        match kind.as_str() {
            "" | "application/x-www-form-urlencoded" => Self::Json,
            // Some clients call a form so, and some engines read it (MULTI-11).
            "multipart/form-data" | "multipart/mixed" => Self::Form,
            kind if kind.starts_with("text/") || kind.ends_with("+json") => Self::Json,
            _ => Self::Opaque,
        }
    }
}

fn invalid(problem: &str) -> Rejection {
    Rejection::InvalidForm { problem: problem.to_owned() }
}

fn boundary(parameters: &str) -> Result<Boundary, &'static str> {
    let mut found = Parameters(parameters).filter(|(name, _)| name == "boundary");
    match (found.next(), found.next()) {
        (None, _) => Err("its content type names no boundary"),
        (Some((_, text)), None) => Boundary::checked(text),
        (Some(_), Some(_)) => Err("its content type names two boundaries"),
    }
}

/// A header value's first word and the parameters behind it.
pub(super) fn split(value: &str) -> (&str, &str) {
    let (word, parameters) = value.split_once(';').unwrap_or((value, ""));
    (word.trim(), parameters)
}

/// The parameters of a header value: names in lower case, quotes taken off. What cannot be read is
/// passed over.
pub(super) struct Parameters<'a>(pub(super) &'a str);

impl Iterator for Parameters<'_> {
    type Item = (String, String);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.0.trim_start_matches([' ', '\t', ';']);
            if rest.is_empty() {
                return None;
            }
            let name_ends = rest.find(['=', ';']).unwrap_or(rest.len());
            let (name, after) = rest.split_at_checked(name_ends)?;
            let Some(value) = after.strip_prefix('=') else {
                self.0 = after;
                continue;
            };
            let (value, after) = parameter_value(value.trim_start_matches([' ', '\t']));
            self.0 = after;
            return Some((name.trim().to_ascii_lowercase(), value));
        }
    }
}

/// A quoted string or a plain value at the beginning of `text`, and what follows it.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, after) =
            text.split_at_checked(text.find(';').unwrap_or(text.len())).unwrap_or((text, ""));
        return (value.trim_end().to_owned(), after);
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => value.extend(characters.next()),
            _ => value.push(character),
        }
    }
    let after = characters.as_str();
    (value, after.find(';').and_then(|at| after.get(at..)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(content_type: &str) -> Result<String, String> {
        match BodyKind::of(Some(content_type)) {
            Ok(BodyKind::Form(boundary)) => Ok(boundary.as_str().to_owned()),
            Ok(other) => panic!("{content_type}: {other:?}"),
            Err(rejection) => Err(rejection.message()),
        }
    }

    #[test]
    fn http_10_json_is_read_whatever_it_is_called() {
        for content_type in [
            None,
            Some(""),
            Some("application/json"),
            Some("application/json; charset=utf-8"),
            Some("Application/JSON;charset=UTF-8"),
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("application/problem+json"),
        ] {
            assert_eq!(BodyKind::of(content_type), Ok(BodyKind::Json), "{content_type:?}");
        }
        for content_type in
            ["application/octet-stream", "audio/wav", "multipart/related; boundary=x"]
        {
            assert_eq!(BodyKind::of(Some(content_type)), Ok(BodyKind::Opaque), "{content_type}");
        }
    }

    #[test]
    fn an_api_takes_the_kinds_of_bodies_that_its_model_is_read_from() {
        let takes = |model_at, kind| BodyKind::expect(model_at, Some(kind)).is_ok();
        for kind in ["application/json; charset=utf-8", "text/plain", "application/x+json", ""] {
            assert!(takes(ModelAt::Json, kind) && takes(ModelAt::Form, kind), "{kind}");
        }
        assert!(takes(ModelAt::Form, "Multipart/Form-Data"), "what it lacks is told later");
        assert!(!takes(ModelAt::Json, "multipart/form-data; boundary=x"));
        for kind in ["application/octet-stream", "audio/wav", "multipart/related; boundary=x", "x"]
        {
            assert!(!takes(ModelAt::Json, kind) && !takes(ModelAt::Form, kind), "{kind}");
            assert!(takes(ModelAt::Address, kind), "{kind}");
        }
    }

    #[test]
    fn multi_07_boundaries_in_every_spelling() {
        let longest = "b".repeat(70);
        for (parameters, boundary) in [
            (r#"boundary="abc def""#, "abc def"),
            ("boundary=abc; charset=utf-8", "abc"),
            ("charset=utf-8; boundary=abc", "abc"),
            (r#"charset="a;boundary=no"; boundary=abc"#, "abc"),
            ("Boundary=abc", "abc"),
            ("boundary = abc ", "abc"),
            (r#"boundary="a\-b""#, "a-b"),
            ("boundary=----WebKitFormBoundary7MA4YWxk", "----WebKitFormBoundary7MA4YWxk"),
            (&format!("boundary={longest}"), &longest),
        ] {
            let found = form(&format!("multipart/form-data; {parameters}"));
            assert_eq!(found.as_deref(), Ok(boundary), "{parameters}");
        }
        assert_eq!(form("MULTIPART/FORM-DATA;boundary=x").as_deref(), Ok("x"));
    }

    #[test]
    fn multi_07_what_is_no_boundary_is_refused() {
        for (parameters, problem) in [
            ("", "names no boundary"),
            ("charset=utf-8", "names no boundary"),
            ("boundary", "names no boundary"),
            ("boundary=", "empty"),
            (r#"boundary="""#, "empty"),
            (r#"boundary="a\"b""#, "a character that none may have"),
            ("boundary=a\u{e9}", "a character that none may have"),
            (r#"boundary="a ""#, "ends with a space"),
            (&format!("boundary={}", "b".repeat(71)), "longer than 70"),
            ("boundary=a; boundary=b", "two boundaries"),
        ] {
            let said = form(&format!("multipart/form-data; {parameters}")).expect_err("refused");
            assert!(said.contains(problem), "{parameters}: {said}");
        }
    }
}
