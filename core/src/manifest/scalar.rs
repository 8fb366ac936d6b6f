//! What a plain scalar means. The same file is read here and by kubectl, whose reader follows an
//! older YAML: where the two would differ, neither is guessed and quotes are asked for.

use serde_json::{Number, Value};

use super::node::Scalar;

/// What a scalar means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meaning {
    Null,
    Truth(bool),
    Number(Number),
    Text,
    /// A text here and something else for another reader, as named.
    Ambiguous(&'static str),
}

impl Scalar {
    pub(crate) fn means(&self) -> Meaning {
        if self.plain { plain_meaning(&self.text) } else { Meaning::Text }
    }

    pub(crate) fn to_json(&self) -> Value {
        match self.means() {
            Meaning::Null => Value::Null,
            Meaning::Truth(truth) => Value::Bool(truth),
            Meaning::Number(number) => Value::Number(number),
            Meaning::Text | Meaning::Ambiguous(_) => Value::String(self.text.clone()),
        }
    }
}

fn plain_meaning(text: &str) -> Meaning {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Meaning::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return Meaning::Truth(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Meaning::Truth(false);
        }
        "y" | "Y" | "n" | "N" => return Meaning::Ambiguous("true or false"),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Meaning::Text;
    }
    number(text, digits)
}

/// The number that `text` is; `digits` is the same without its sign.
fn number(text: &str, digits: &str) -> Meaning {
    let all = |text: &str, allowed: fn(&char) -> bool| {
        !text.is_empty() && text.chars().all(|letter| allowed(&letter))
    };
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        let negative = text.starts_with('-');
        return match i64::from_str_radix(hexadecimal, 16) {
            Ok(value) if all(hexadecimal, char::is_ascii_hexdigit) => {
                Meaning::Number(if negative { -value } else { value }.into())
            }
            _ => Meaning::Text,
        };
    }
    if digits.starts_with("0o") || digits.starts_with("0b") {
        return Meaning::Ambiguous("a number");
    }
    if digits.contains('_')
        && all(digits, |letter| letter.is_ascii_digit() || "_.".contains(*letter))
    {
        return Meaning::Ambiguous("a number");
    }
    if all(digits, char::is_ascii_digit) {
        if digits.len() > 1 && digits.starts_with('0') {
            return Meaning::Ambiguous("an octal number");
        }
        return whole(text).map_or(Meaning::Text, Meaning::Number);
    }
    fraction(text, digits).map_or(Meaning::Text, Meaning::Number)
}

fn whole(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = unsigned.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = unsigned.parse::<u64>() {
        return Some(number.into());
    }
    Number::from_f64(unsigned.parse().ok()?)
}

/// Digits with a point or an exponent, and nothing else that Rust would read as a number.
fn fraction(text: &str, digits: &str) -> Option<Number> {
    let ours = digits.chars().all(|letter| letter.is_ascii_digit() || ".eE+-".contains(letter));
    if !ours || !digits.contains(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    Number::from_f64(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        Scalar { text: text.to_owned(), plain: true }.to_json()
    }

    #[test]
    fn plain_scalars_mean_what_kubectl_takes_them_for() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("true", json!(true)),
            ("on", json!(true)),
            ("No", json!(false)),
            ("8192", json!(8192)),
            ("+1", json!(1)),
            ("-1", json!(-1)),
            ("0x1F", json!(31)),
            ("18446744073709551615", json!(u64::MAX)),
            ("0.85", json!(0.85)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("0", json!(0)),
            ("1.2.3", json!("1.2.3")),
            ("5m", json!("5m")),
            (".inf", json!(".inf")),
            ("0x", json!("0x")),
            ("HF://a/b", json!("HF://a/b")),
            ("-", json!("-")),
            (".", json!(".")),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
    }

    #[test]
    fn what_readers_disagree_on_is_ambiguous() {
        for text in ["y", "N", "0123", "-0123", "1_000", "0o17", "0b11"] {
            assert!(matches!(plain_meaning(text), Meaning::Ambiguous(_)), "{text}");
        }
    }

    #[test]
    fn quotes_make_a_text_of_anything() {
        for text in ["true", "1", "", "null", "y"] {
            let scalar = Scalar { text: text.to_owned(), plain: false };
            assert_eq!(scalar.to_json(), json!(text));
        }
    }
}
