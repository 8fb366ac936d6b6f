//! The beginning of the text in a JSON value, whatever shape clients give it: a string, an array of
//! parts, an object with its text inside.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::unescape::characters;

/// How deep text may lie: an array of parts, a part, its text, and one to spare. Each level is read
/// once more, so that depth must not be the client's choice.
const DEEPEST: usize = 4;

/// A text that grows up to a limit.
#[derive(Debug)]
pub(crate) struct Excerpt {
    text: String,
    /// In bytes; it is cut between two characters.
    limit: usize,
    full: bool,
    /// Lower case, and one blank in place of many.
    normal: bool,
    /// A blank that is written before the next character, if one comes.
    blank: bool,
}

impl Excerpt {
    /// The text as it is.
    pub(crate) fn plain(limit: usize) -> Self {
        Self { text: String::new(), limit, full: limit == 0, normal: false, blank: false }
    }

    /// The text in lower case, with one blank wherever there are several, and none around it.
    pub(crate) fn normal(limit: usize) -> Self {
        Self { normal: true, ..Self::plain(limit) }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Appends the text in `value`, a JSON value.
    pub(crate) fn take(&mut self, value: &str) {
        self.take_at(value, DEEPEST);
    }

    /// Appends the text in the first element of `array`, a JSON array.
    pub(crate) fn take_first(&mut self, array: &str) {
        let elements = serde_json::from_str::<Vec<&RawValue>>(array).unwrap_or_default();
        if let Some(first) = elements.first() {
            self.take(first.get());
        }
    }

    fn take_at(&mut self, value: &str, depth: usize) {
        if self.full || depth == 0 {
            return;
        }
        match value.trim_start().as_bytes().first() {
            Some(b'"') => self.append(characters(value.trim())),
            Some(b'[') => {
                for part in serde_json::from_str::<Vec<&RawValue>>(value).unwrap_or_default() {
                    self.part();
                    self.take_at(part.get(), depth - 1);
                }
            }
            Some(b'{') => {
                let object = serde_json::from_str::<Object<'_>>(value).unwrap_or_default();
                if let Some(inner) = object.text() {
                    self.take_at(inner.get(), depth - 1);
                }
            }
            _ => {}
        }
    }

    /// A blank between this part and what came before.
    fn part(&mut self) {
        if !self.text.is_empty() {
            self.append([' '].into_iter());
        }
    }

    fn append(&mut self, characters: impl Iterator<Item = char>) {
        for character in characters {
            if self.full {
                return;
            }
            if !self.normal {
                self.push(character);
            } else if character.is_whitespace() {
                self.blank = !self.text.is_empty();
            } else {
                if std::mem::take(&mut self.blank) {
                    self.push(' ');
                }
                character.to_lowercase().for_each(|character| self.push(character));
            }
        }
    }

    fn push(&mut self, character: char) {
        self.full |= self.text.len() + character.len_utf8() > self.limit;
        if !self.full {
            self.text.push(character);
        }
    }
}

/// Where an object has its text: the first of these that it has.
#[derive(Default, Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

impl<'a> Object<'a> {
    fn text(self) -> Option<&'a RawValue> {
        self.text.or(self.content).or(self.value).or(self.parts)
    }
}

/// A JSON string without its quotes and escapes; `None` for any other value.
pub(crate) fn string(value: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(value).ok().map(|text| text.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(value: &str, limit: usize) -> String {
        let mut excerpt = Excerpt::normal(limit);
        excerpt.take(value);
        excerpt.into_text()
    }

    #[test]
    fn text_is_found_in_every_shape() {
        for value in [
            r#""Hello  World""#,
            r#"["Hello","World"]"#,
            r#"{"text":"Hello\n\tWORLD "}"#,
            r#"[{"type":"text","text":" hello"},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"world"}]"#,
            r#"{"role":"user","content":[{"text":"hello"},{"value":"world"}]}"#,
            r#"{"parts":["hello",{"content":"world"}]}"#,
        ] {
            assert_eq!(normal(value, 100), "hello world", "{value}");
        }
        for value in ["1", "null", "true", "[]", "{}", r#"{"url":"x"}"#, r#"[[[["x"]]]]"#] {
            assert_eq!(normal(value, 100), "", "{value}");
        }
    }

    #[test]
    fn it_is_cut_between_characters() {
        assert_eq!(normal(r#""日本語""#, 7), "日本");
        assert_eq!(normal(r#""ab cd""#, 3), "ab ");
        assert_eq!(normal(r#""x""#, 0), "");
        let mut plain = Excerpt::plain(5);
        plain.take(r#"["A B","C"]"#);
        assert_eq!(plain.into_text(), "A B C");
    }

    #[test]
    fn strings_alone_are_strings() {
        assert_eq!(string(r#" "a\u0062" "#).as_deref(), Some("ab"));
        assert_eq!(string("7"), None);
    }
}
