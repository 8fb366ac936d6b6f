//! Typed reading of `spec.config`, the free object with a backend's options. A value of the wrong
//! type is refused with its name, what was expected and how to write it; it is never ignored.

use std::time::Duration;

use serde_json::{Map, Value};

use super::Complaint;

/// The options of one Model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config<'a> {
    object: Option<&'a Map<String, Value>>,
}

impl<'a> Config<'a> {
    /// The options in `object`; `None` is none.
    pub const fn of(object: Option<&'a Map<String, Value>>) -> Self {
        Self { object }
    }

    /// The names of all options that are set. A `null` counts as unset.
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        let entries = self.object.into_iter().flat_map(Map::iter);
        entries.filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str())
    }

    /// Whether the option is set to anything.
    pub fn has(self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// A text.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, Complaint> {
        self.read(name, "a text", |value| match value {
            Value::String(text) => Ok(text.as_str()),
            Value::Number(number) => Err(format!("put it in quotes: {name}: \"{number}\"")),
            Value::Bool(flag) => Err(format!("put it in quotes: {name}: \"{flag}\"")),
            _ => Err(format!("write {name}: some-text")),
        })
    }

    /// A whole number.
    pub fn integer(self, name: &str) -> Result<Option<i64>, Complaint> {
        self.read(name, "a whole number", |value| match value {
            Value::Number(number) if number.is_i64() => Ok(number.as_i64().unwrap_or_default()),
            Value::Number(_) => Err("leave out the fraction".to_owned()),
            other => {
                Err(unquoted(name, other, |text| text.parse::<i64>().is_ok())
                    .unwrap_or_else(digits))
            }
        })
    }

    /// A whole number that cannot be negative.
    pub fn count(self, name: &str) -> Result<Option<u32>, Complaint> {
        let Some(number) = self.integer(name)? else { return Ok(None) };
        match u32::try_from(number) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(Complaint::error(
                field(name),
                format!("{number} is out of range; write a number from 0 to {}", u32::MAX),
            )),
        }
    }

    /// A number with or without a fraction, written as the engine shall read it.
    pub fn number(self, name: &str) -> Result<Option<String>, Complaint> {
        self.read(name, "a number", |value| match value {
            Value::Number(number) => Ok(number.to_string()),
            other => Err(unquoted(name, other, is_number).unwrap_or_else(digits)),
        })
    }

    /// A number that may also stand in quotes, as the original wanted it for some options.
    pub fn number_or_text(self, name: &str) -> Result<Option<String>, Complaint> {
        self.read(name, "a number", |value| match value {
            Value::Number(number) => Ok(number.to_string()),
            Value::String(text) if is_number(text) => Ok(text.trim().to_owned()),
            _ => Err(digits()),
        })
    }

    /// True or false.
    pub fn flag(self, name: &str) -> Result<Option<bool>, Complaint> {
        self.read(name, "true or false", |value| match value {
            Value::Bool(flag) => Ok(*flag),
            other => Err(unquoted(name, other, |text| matches!(text, "true" | "false"))
                .unwrap_or_else(|| format!("write {name}: true, or {name}: false"))),
        })
    }

    /// `on`, `off` or `auto`; true and false mean the first two.
    pub fn switch(self, name: &str) -> Result<Option<&'a str>, Complaint> {
        self.read(name, "on, off or auto", |value| match value {
            Value::Bool(true) => Ok("on"),
            Value::Bool(false) => Ok("off"),
            Value::String(text) if matches!(text.as_str(), "on" | "off" | "auto") => Ok(text),
            _ => Err(format!("write {name}: auto")),
        })
    }

    /// A list of texts; a single text is a list of one.
    pub fn texts(self, name: &str) -> Result<Option<Vec<&'a str>>, Complaint> {
        self.read(name, "a list of texts", |value| {
            let example = format!("write {name}: [\"first\", \"second\"], each text in quotes");
            match value {
                Value::String(text) => Ok(vec![text.as_str()]),
                Value::Array(items) => {
                    items.iter().map(Value::as_str).collect::<Option<_>>().ok_or(example)
                }
                _ => Err(example),
            }
        })
    }

    /// An object or list, or a text that holds one, as JSON on one line.
    pub fn json(self, name: &str) -> Result<Option<String>, Complaint> {
        self.read(name, "an object", |value| match value {
            Value::Object(_) | Value::Array(_) => Ok(value.to_string()),
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(_) | Value::Array(_)) => Ok(text.clone()),
                _ => Err("write it as YAML, or as JSON in quotes".to_owned()),
            },
            _ => Err("write it as YAML, or as JSON in quotes".to_owned()),
        })
    }

    /// Variables for an environment: an object of texts, numbers and booleans.
    pub fn variables(self, name: &str) -> Result<Option<Vec<(String, String)>>, Complaint> {
        self.read(name, "an object of texts", |value| {
            let example = format!("write {name}: {{NAME: \"value\"}}");
            let Value::Object(object) = value else { return Err(example) };
            object
                .iter()
                .map(|(key, value)| Some((key.clone(), plain(value)?)))
                .collect::<Option<_>>()
                .ok_or(example)
        })
    }

    /// A span of time such as `90s`, `5m` or `1h30m`.
    pub fn duration(self, name: &str) -> Result<Option<Duration>, Complaint> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let read: Result<flexinfer_crds::Duration, _> = text.parse();
        read.map(|duration| Some(duration.get()))
            .map_err(|error| Complaint::error(field(name), error.to_string()))
    }

    /// The tokens of context the engine is told to hold: the first of `maxModelLen`,
    /// `maxTotalSeqLength`, `contextWindowSize` and `contextSize` that is above 0.
    pub fn context_window(self) -> Option<u32> {
        ["maxModelLen", "maxTotalSeqLength", "contextWindowSize", "contextSize"]
            .into_iter()
            .find_map(|name| self.count(name).ok().flatten().filter(|tokens| *tokens > 0))
    }

    fn value(self, name: &str) -> Option<&'a Value> {
        self.object?.get(name).filter(|value| !value.is_null())
    }

    /// The option's value through `accept`, whose refusal says how to write it.
    fn read<T>(
        self,
        name: &str,
        expected: &str,
        accept: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Result<Option<T>, Complaint> {
        let Some(value) = self.value(name) else { return Ok(None) };
        accept(value).map(Some).map_err(|fix| {
            let found = shown(value);
            Complaint::error(field(name), format!("expected {expected}, found {found}; {fix}"))
        })
    }
}

/// The path of an option from the top of the Model.
pub(super) fn field(name: &str) -> String {
    format!("spec.config.{name}")
}

/// How to write a value that only stands in quotes and should not.
fn unquoted(name: &str, value: &Value, fits: impl Fn(&str) -> bool) -> Option<String> {
    let text = value.as_str()?.trim();
    fits(text).then(|| format!("remove the quotes: {name}: {text}"))
}

/// How to write a number. Which one nobody here knows: an example would be taken for advice.
fn digits() -> String {
    "write it in digits, without quotes".to_owned()
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(f64::is_finite)
}

/// A value as the message shows it: its kind, and the value itself if it is short.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => format!("{flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 60 => format!("the text \"{text}\""),
        Value::String(_) => "a long text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
