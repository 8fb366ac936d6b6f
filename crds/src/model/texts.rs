//! The texts of a spec that have a form: each once, as the pattern that an API server checks and as
//! the same question in Rust, which answers with how to write it.

use crate::{Duration, Quantity};

/// A form that some texts of a spec must have.
pub struct TextForm {
    /// The pattern, as it stands in the schema.
    pub pattern: &'static str,
    /// Whether a text has the form; if not, what is wrong and how to write it.
    pub check: fn(&str) -> Result<(), String>,
}

/// Every form; a pattern of the schema is one of these.
pub const TEXT_FORMS: [TextForm; 5] = [
    TextForm {
        pattern: Duration::PATTERN,
        check: |text| text.parse::<Duration>().map(drop).map_err(|error| error.to_string()),
    },
    TextForm {
        pattern: Quantity::PATTERN,
        check: |text| Quantity::new(text).number().map(drop).map_err(|error| error.to_string()),
    },
    TextForm { pattern: IMAGE_DIGEST, check: image_digest },
    TextForm { pattern: MEMORY_FRACTION, check: memory_fraction },
    TextForm { pattern: ADAPTER_NAME, check: adapter_name },
];

pub(super) const IMAGE_DIGEST: &str = r"^(sha256:)?[a-f0-9]{64}$";

pub(super) const MEMORY_FRACTION: &str = r"^(0(\.[0-9]{1,4})?|1(\.0{1,4})?)$";

/// What a LoRA adapter may be called.
pub const ADAPTER_NAME: &str = r"^[A-Za-z0-9]([A-Za-z0-9._:/@+-]{0,251}[A-Za-z0-9])?$";

fn adapter_name(text: &str) -> Result<(), String> {
    let ends = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "._:/@+-".contains(letter);
    let (first, last) = (text.chars().next(), text.chars().next_back());
    if ends(first) && ends(last) && text.len() <= 253 && text.chars().all(inner) {
        return Ok(());
    }
    Err(format!("`{text}` is no name; write letters, digits and ._:/@+- between them"))
}

fn image_digest(text: &str) -> Result<(), String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    let hexadecimal = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() == 64 && digits.bytes().all(hexadecimal) {
        return Ok(());
    }
    Err(format!("`{text}` is not a digest; write sha256: and 64 lower-case hexadecimal digits"))
}

fn memory_fraction(text: &str) -> Result<(), String> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let short = matches!(decimals.len(), 1..=4);
    let fits = match whole {
        "0" => decimals.bytes().all(|digit| digit.is_ascii_digit()),
        "1" => decimals.bytes().all(|digit| digit == b'0'),
        _ => false,
    };
    if short && fits {
        return Ok(());
    }
    Err(format!("`{text}` is not a share; write a number from 0 to 1, such as \"0.80\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_does_not_fit_is_told_how_to_write_it() {
        for (check, text) in [
            (image_digest as fn(&str) -> Result<(), String>, "sha256:abc"),
            (image_digest, "latest"),
            (image_digest, &"A".repeat(64)),
            (memory_fraction, "80%"),
            (memory_fraction, "1.5"),
            (memory_fraction, "0."),
            (memory_fraction, "0.123456"),
        ] {
            assert!(check(text).unwrap_err().contains("; write "), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_patterns_allow_is_accepted(
            digest in "(sha256:)?[a-f0-9]{64}",
            fraction in "(0(\\.[0-9]{1,4})?|1(\\.0{1,4})?)",
            quantity in "(\\+|-)?[0-9]{1,5}(\\.[0-9]{0,3})?([KMGTPE]i|[mkMGTPE]|e[0-9])?",
        ) {
            prop_assert_eq!(image_digest(&digest), Ok(()));
            prop_assert_eq!(memory_fraction(&fraction), Ok(()));
            prop_assert!(Quantity::new(quantity).number().is_ok());
        }
    }
}
