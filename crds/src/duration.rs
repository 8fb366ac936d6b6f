//! A length of time as people write it in a spec: `60s`, `5m`, `1h30m`, `250ms`, `0`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A length of time in whole milliseconds: numbers with the units `h`, `m`, `s` and `ms` in a row,
/// or `0`. It is written back in its shortest form: `90m` becomes `1h30m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    milliseconds: u64,
}

/// Why a text is not a duration, and how to write it instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit.
    #[error("`{0}` has no unit; write `{0}s` for seconds, or use ms, m or h")]
    NoUnit(String),
    /// A unit that is not one of ours.
    #[error("`{text}` has the unknown unit `{unit}`; use h, m, s or ms, as in `1h30m` or `250ms`")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The unit in it.
        unit: String,
    },
    /// Anything else.
    #[error("`{0}` is not a duration; write it like `60s`, `5m`, `1h30m` or `250ms`")]
    Malformed(String),
}

impl Duration {
    /// What a duration must look like, as the CRD says it.
    pub const PATTERN: &str = r"^(0|([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms))+)$";

    /// The longest text accepted, in characters.
    const MAX_LENGTH: usize = 64;

    /// So many milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self { milliseconds }
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self { milliseconds: seconds.saturating_mul(1000) }
    }

    /// The same length for the standard library.
    pub const fn get(self) -> time::Duration {
        time::Duration::from_millis(self.milliseconds)
    }
}

impl From<Duration> for time::Duration {
    fn from(duration: Duration) -> Self {
        duration.get()
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let malformed = || DurationError::Malformed(text.chars().take(Self::MAX_LENGTH).collect());
        if text == "0" {
            return Ok(Self::default());
        }
        if text.is_empty() || text.len() > Self::MAX_LENGTH {
            return Err(malformed());
        }
        let mut milliseconds = 0_u64;
        let mut rest = text;
        while !rest.is_empty() {
            let number_end = end_of(rest, |letter| letter.is_ascii_digit() || letter == '.');
            let (number, after) = rest.split_at(number_end);
            let unit_end = end_of(after, char::is_alphabetic);
            let (unit, after) = after.split_at(unit_end);
            let (whole, fraction) = digits(number).ok_or_else(malformed)?;
            let factor = match unit {
                "h" => 3_600_000,
                "m" => 60_000,
                "s" => 1000,
                "ms" => 1,
                "" if rest == text && after.is_empty() => {
                    return Err(DurationError::NoUnit(text.to_owned()));
                }
                "" => return Err(malformed()),
                unit => {
                    return Err(DurationError::UnknownUnit {
                        text: text.to_owned(),
                        unit: unit.to_owned(),
                    });
                }
            };
            // Both numbers have at most nine digits and the text at most 64 characters.
            milliseconds += whole * factor + fraction * factor / 1_000_000_000;
            rest = after;
        }
        Ok(Self { milliseconds })
    }
}

fn end_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !belongs(letter)).unwrap_or(text.len())
}

/// The part before the point, and the part after it in billionths.
fn digits(number: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    if whole.is_empty() || whole.len() > 9 || fraction.len() > 9 {
        return None;
    }
    Some((whole.parse().ok()?, format!("{fraction:0<9}").parse().ok()?))
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.milliseconds == 0 {
            return formatter.write_str("0s");
        }
        let mut rest = self.milliseconds;
        for (factor, unit) in [(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")] {
            let count = rest / factor;
            rest %= factor;
            if count > 0 {
                write!(formatter, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a duration such as `60s`, `5m` or `1h30m`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
        Err(E::custom(DurationError::NoUnit(number.to_string())))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duration, E> {
        Err(E::custom(DurationError::Malformed(number.to_string())))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Duration, E> {
        Err(E::custom(DurationError::NoUnit(number.to_string())))
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": Self::PATTERN,
            "maxLength": Self::MAX_LENGTH,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, milliseconds) in [
            ("0", 0),
            ("0s", 0),
            ("250ms", 250),
            ("60s", 60_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1m0s", 60_000),
            ("1.5h", 5_400_000),
            ("0.25s", 250),
            ("2m2m", 240_000),
            ("999999999h", 3_599_999_996_400_000),
        ] {
            assert_eq!(text.parse(), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_the_right_way_to_write_it() {
        for (text, message) in [
            ("60", "`60` has no unit; write `60s` for seconds, or use ms, m or h"),
            ("", "`` is not a duration; write it like `60s`, `5m`, `1h30m` or `250ms`"),
            ("-5m", "`-5m` is not a duration; write it like `60s`, `5m`, `1h30m` or `250ms`"),
            ("1h30", "`1h30` is not a duration; write it like `60s`, `5m`, `1h30m` or `250ms`"),
            ("1.s", "`1.s` is not a duration; write it like `60s`, `5m`, `1h30m` or `250ms`"),
            ("5 m", "`5 m` is not a duration; write it like `60s`, `5m`, `1h30m` or `250ms`"),
            ("2d", "`2d` has the unknown unit `d`; use h, m, s or ms, as in `1h30m` or `250ms`"),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn bare_numbers_in_json_are_refused() {
        for (json, message) in [
            ("60", "`60` has no unit"),
            ("-1", "`-1` is not a duration"),
            ("1.5", "`1.5` has no unit"),
            ("true", "expected a duration"),
        ] {
            let error = serde_json::from_str::<Duration>(json).unwrap_err().to_string();
            assert!(error.contains(message), "{json}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_written_duration_reads_back_as_itself(milliseconds in 0_u64..4_000_000_000_000) {
            let duration = Duration::from_millis(milliseconds);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn reading_never_panics(text in "\\PC{0,70}") {
            let _ = text.parse::<Duration>();
        }

        #[test]
        fn whatever_the_pattern_allows_is_read(
            text in "([0-9]{1,9}(\\.[0-9]{1,9})?(h|m|s|ms)){1,2}"
        ) {
            prop_assert!(text.parse::<Duration>().is_ok());
        }
    }
}
