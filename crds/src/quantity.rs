//! An amount as Kubernetes writes it: `24Gi`, `500m`, `0.85`.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource as kubernetes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A Kubernetes quantity, kept as it was written. Numbers are taken without quotes too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantity(String);

/// A text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a quantity; write a number with an optional unit, like `24Gi`, `500m` or `0.85`"
)]
pub struct QuantityError(pub String);

/// Suffixes of binary units, then of decimal ones; the empty suffix comes last.
const UNITS: [(&str, f64); 14] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("", 1.0),
];

impl Quantity {
    /// What a quantity must look like, as the CRD says it.
    pub const PATTERN: &str =
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[mkMGTPE]|([eE](\+|-)?[0-9]+))?$";

    /// The quantity written as `text`; read it with [`Quantity::number`].
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The amount as a number: `1Ki` is 1024, `500m` is 0.5.
    pub fn number(&self) -> Result<f64, QuantityError> {
        let refuse = || QuantityError(self.0.clone());
        let (digits, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((self.0.strip_suffix(unit)?, *factor)))
            .ok_or_else(refuse)?;
        // Rust reads words such as `inf` as numbers too; a quantity has digits.
        if !digits.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
            return Err(refuse());
        }
        let number = digits.parse::<f64>().map_err(|_| refuse())? * factor;
        if number.is_finite() { Ok(number) } else { Err(refuse()) }
    }

    /// The amount in whole bytes, rounded up.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is known to lie between zero and 2^63"
    )]
    pub fn bytes(&self) -> Result<u64, QuantityError> {
        let number = self.number()?.ceil();
        if (0.0..9_223_372_036_854_775_808.0).contains(&number) {
            Ok(number as u64)
        } else {
            Err(QuantityError(self.0.clone()))
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<&Quantity> for kubernetes::Quantity {
    fn from(quantity: &Quantity) -> Self {
        Self(quantity.0.clone())
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a quantity such as `24Gi` or `0.85`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity::new(text))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "pattern": Self::PATTERN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_every_unit() {
        for (text, number) in [
            ("24Gi", 25_769_803_776.0),
            ("500m", 0.5),
            ("0.85", 0.85),
            ("1e3", 1000.0),
            ("2k", 2000.0),
            ("-1", -1.0),
            (".5", 0.5),
        ] {
            assert_eq!(Quantity::new(text).number(), Ok(number), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "Gi", "24GB", "inf", "nan", "1 Gi", "m"] {
            assert_eq!(Quantity::new(text).number(), Err(QuantityError(text.into())), "{text}");
        }
        assert!(Quantity::new("-1Gi").bytes().is_err());
        assert!(Quantity::new("16Ei").bytes().is_err());
        assert_eq!(Quantity::new("1.5Ki").bytes(), Ok(1536));
    }

    #[test]
    fn a_quantity_keeps_the_way_it_was_written() {
        let quantity: Quantity = serde_json::from_str("\"1536Mi\"").unwrap();
        assert_eq!(serde_json::to_string(&quantity).unwrap(), "\"1536Mi\"");
        assert_eq!(serde_json::from_str::<Quantity>("0.85").unwrap().as_str(), "0.85");
        assert_eq!(serde_json::from_str::<Quantity>("4").unwrap().as_str(), "4");
    }
}
