//! The characters of a JSON string, one after the other: whoever wants only the first few of a long
//! text pays for those.

use std::str::Chars;

/// The characters of `raw`, a valid JSON string with its quotes. Half a surrogate pair counts as
/// U+FFFD.
pub(super) fn characters(raw: &str) -> impl Iterator<Item = char> {
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or_default();
    Unescaped { rest: inner.chars() }
}

struct Unescaped<'a> {
    rest: Chars<'a>,
}

impl Iterator for Unescaped<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.rest.next()? {
            '\\' => {}
            plain => return Some(plain),
        }
        Some(match self.rest.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => self.unicode(),
            itself => itself,
        })
    }
}

impl Unescaped<'_> {
    fn unicode(&mut self) -> char {
        let first = self.unit();
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
        }
        let mut ahead = Unescaped { rest: self.rest.clone() };
        if (ahead.rest.next(), ahead.rest.next()) != (Some('\\'), Some('u')) {
            return char::REPLACEMENT_CHARACTER;
        }
        let second = ahead.unit();
        if !(0xDC00..0xE000).contains(&second) {
            return char::REPLACEMENT_CHARACTER;
        }
        self.rest = ahead.rest;
        let both = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> u32 {
        let digits = self.rest.by_ref().take(4);
        digits.fold(0, |unit, digit| unit * 16 + digit.to_digit(16).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unescaped(raw: &str) -> String {
        characters(raw).collect()
    }

    #[test]
    fn every_escape_is_read() {
        assert_eq!(
            unescaped(r#""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00""#),
            "a\"\\/\u{8}\u{c}\n\r\téé😀"
        );
    }

    #[test]
    fn half_a_pair_is_no_character() {
        assert_eq!(unescaped(r#""\ud83dx\ude00\ud83d\u0041""#), "\u{fffd}x\u{fffd}\u{fffd}A");
    }

    proptest! {
        #[test]
        fn what_serde_wrote_reads_back(text in any::<String>()) {
            let raw = serde_json::to_string(&text).expect("a string");
            prop_assert_eq!(unescaped(&raw), text);
        }
    }
}
