//! How to ask an engine whether it serves, and what its answer means. An open socket is no answer:
//! engines open theirs long before the weights are read, and a foreign program may own the port.

use serde_json::Value;

/// The question that tells whether an engine serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// GET `path`; ready when the answer is `expected`.
    Http { path: String, expected: Expected },
    /// Connect, nothing more. Only for engines that have no path to ask, and only when the Model
    /// says so.
    Tcp,
}

/// What a serving engine answers with a status of 200 to 299.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Anything.
    Success,
    /// A body with this text in it.
    Text(&'static str),
    /// A JSON object that has this field, with this value where one is given.
    Json { field: &'static str, value: Option<&'static str> },
}

/// What an answer to a probe means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The engine serves.
    Ready,
    /// The engine says that it is not ready yet.
    NotYet,
    /// This is not what the engine answers: what came instead, for people.
    Garbage(String),
}

impl Probe {
    /// GET `path`, any success will do.
    pub fn success(path: impl Into<String>) -> Self {
        Self::Http { path: path.into(), expected: Expected::Success }
    }

    /// What an HTTP answer of `status` with `body` means.
    pub fn judge(&self, status: u16, body: &[u8]) -> Verdict {
        let Self::Http { path, expected } = self else { return Verdict::Ready };
        match status {
            200..=299 if expected.is_met_by(body) => Verdict::Ready,
            200..=299 => Verdict::Garbage(format!(
                "GET {path} was answered {status} with `{}`, where {expected} was expected; \
                 is another program listening on this port?",
                excerpt(body)
            )),
            // Engines answer these while they load, and so do the frameworks below them.
            425 | 429 | 500 | 502..=504 => Verdict::NotYet,
            _ => Verdict::Garbage(format!(
                "GET {path} was answered {status} with `{}`",
                excerpt(body)
            )),
        }
    }
}

impl Expected {
    fn is_met_by(&self, body: &[u8]) -> bool {
        match self {
            Self::Success => true,
            Self::Text(text) => memchr::memmem::find(body, text.as_bytes()).is_some(),
            Self::Json { field, value } => {
                let Ok(Value::Object(object)) = serde_json::from_slice(body) else { return false };
                let Some(found) = object.get(*field) else { return false };
                value.is_none_or(|value| found.as_str() == Some(value))
            }
        }
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Success => formatter.write_str("success"),
            Self::Text(text) => write!(formatter, "the text `{text}`"),
            Self::Json { field, value: Some(value) } => {
                write!(formatter, "JSON with `{field}: {value}`")
            }
            Self::Json { field, value: None } => write!(formatter, "JSON with `{field}`"),
        }
    }
}

/// The first 80 characters of an answer on one line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..400).unwrap_or(body));
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(80) {
        line.truncate(end);
        line.push('…');
    }
    line
}
