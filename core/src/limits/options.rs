//! What Ollama's clients say among `options`, an object inside of the request. There a key may come again: Ollama heeds
//! the last one. It may be as long as the body, of which nothing is copied here.

use std::collections::VecDeque;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::openai::Facts;
use crate::openai::facts::Key;

/// Where the key comes oftener, the last ones count.
const MOST: usize = 64;

/// The JSON text of each `num_predict`.
pub(super) fn num_predict<'a>(facts: &Facts, body: &'a [u8]) -> VecDeque<&'a str> {
    let options = facts.text(Key::Options, body);
    let found = options.and_then(|options| serde_json::from_str::<NumPredict<'_>>(options).ok());
    found.map(|found| found.0).unwrap_or_default()
}

struct NumPredict<'a>(VecDeque<&'a str>);

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
        let mut found = VecDeque::new();
        while let Some(IsNumPredict(is_it)) = map.next_key()? {
            if !is_it {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if found.len() == MOST {
                found.pop_front();
            }
            found.push_back(map.next_value::<&'de RawValue>()?.get());
        }
        Ok(NumPredict(found))
    }
}

/// Whether a key is the one that is looked for. It may be no text: escapes for half a character are left to the engine.
struct IsNumPredict(bool);

impl<'de> Deserialize<'de> for IsNumPredict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = IsNumPredict;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_bytes<E: Error>(self, key: &[u8]) -> Result<IsNumPredict, E> {
        Ok(IsNumPredict(key == b"num_predict"))
    }
}
