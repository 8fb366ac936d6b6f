//! What Ollama's clients say among `options`, an object inside of the request. There a key may come again: Ollama heeds
//! the last one.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::openai::Facts;
use crate::openai::facts::Key;

/// Longer options, in bytes, are none of Ollama's.
const LONGEST: usize = 64 * 1024;

/// The JSON text of each `num_predict`, the one that is heeded first of all.
pub(super) fn num_predict<'a>(facts: &Facts, body: &'a [u8]) -> Vec<&'a str> {
    let options = facts.text(Key::Options, body).filter(|options| options.len() <= LONGEST);
    let found = options.and_then(|options| serde_json::from_str::<NumPredict<'_>>(options).ok());
    found.map(|found| found.0.into_iter().rev().collect()).unwrap_or_default()
}

struct NumPredict<'a>(Vec<&'a str>);

impl<'de> Deserialize<'de> for NumPredict<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OptionsVisitor)
    }
}

struct OptionsVisitor;

impl<'de> Visitor<'de> for OptionsVisitor {
    type Value = NumPredict<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "num_predict" {
                found.push(map.next_value::<&'de RawValue>()?.get());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(NumPredict(found))
    }
}
