//! Numbers of bytes as people write them: `256Mi`, `24Gi`, `1000`, `1.5GB`.

use std::fmt;
use std::str::FromStr;

/// The units, longest spelling first where one is the end of another.
const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("B", 1),
    ("", 1),
];

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Why a text is not a size, and how to write one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; write it like 256Mi, 24Gi or 1000000")]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let error = || SizeError(text.to_owned());
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(end).ok_or_else(error)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(error)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: u64 = whole.parse().map_err(|_| error())?;
        let bytes = whole.checked_mul(*factor).ok_or_else(error)?;
        Ok(Self(bytes.checked_add(part(fraction, *factor).ok_or_else(error)?).ok_or_else(error)?))
    }
}

/// `fraction`, the digits after the point, of `factor` bytes, rounded down.
fn part(fraction: &str, factor: u64) -> Option<u64> {
    if fraction.is_empty() {
        return Some(0);
    }
    if fraction.len() > 6 {
        return None;
    }
    let digits: u64 = fraction.parse().ok()?;
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    u64::try_from(u128::from(digits) * u128::from(factor) / u128::from(scale)).ok()
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
        match binary.iter().find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(formatter, "{}{unit}", self.0 / factor),
            None => write!(formatter, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("256Mi", 256 << 20),
            ("256MiB", 256 << 20),
            ("1.5Gi", 3 << 29),
            ("2GB", 2_000_000_000),
            ("24 Gi", 24 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "Mi", "-1", "1e3", "12Xi", "1..5", "999999999Ti", "1.1234567Gi"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_their_largest_whole_unit() {
        assert_eq!(Size(256 << 20).to_string(), "256Mi");
        assert_eq!(Size((1 << 20) + 1).to_string(), "1048577");
        assert_eq!(Size(0).to_string(), "0");
    }
}
