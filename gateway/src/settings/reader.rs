//! Reads one setting after another, from its flag or its variable, and keeps what is wrong for the end.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use flexinfer_core::sources::download::Hub;

use super::size::Size;

/// The variable of each flag: the original's where it has one.
const VARIABLES: &[(&str, &str)] = &[
    ("max-queue-size", "PROXY_MAX_QUEUE_SIZE"),
    ("queue-timeout", "PROXY_QUEUE_TIMEOUT"),
    ("cold-start-timeout", "PROXY_COLD_START_TIMEOUT"),
    ("backoff-enabled", "PROXY_BACKOFF_ENABLED"),
    ("backoff-max-retries", "PROXY_BACKOFF_MAX_RETRIES"),
    ("backoff-initial-wait", "PROXY_BACKOFF_INITIAL_WAIT"),
    ("backoff-max-wait", "PROXY_BACKOFF_MAX_WAIT"),
    ("drain-delay", "PROXY_SHUTDOWN_DRAIN_DELAY"),
    ("shutdown-timeout", "PROXY_GRACEFUL_SHUTDOWN_TIMEOUT"),
    ("upstream-attempts", "FLEXINFER_PROXY_UPSTREAM_MAX_ATTEMPTS"),
    ("label-routing", "FLEXINFER_PROXY_LABEL_GROUP_ROUTING"),
    ("hf-endpoint", "HF_ENDPOINT"),
];

/// Everything that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Complaints(pub Vec<String>);

impl Display for Complaints {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.join("\n"))
    }
}

pub(super) struct Reader<'a, E> {
    environment: &'a E,
    complaints: Vec<String>,
    shown: Shown,
}

/// The settings in force, by the names of their flags: numbers and truths as they are, the rest as
/// text.
pub type Shown = BTreeMap<&'static str, Value>;

/// A setting's text and where it came from.
pub(super) struct Given {
    pub(super) text: String,
    pub(super) from: String,
}

impl<'a, E: Fn(&str) -> Option<String>> Reader<'a, E> {
    pub(super) fn new(environment: &'a E) -> Self {
        Self { environment, complaints: Vec::new(), shown: BTreeMap::new() }
    }

    /// All settings, unless something was wrong.
    pub(super) fn finish(self) -> Result<Shown, Complaints> {
        if self.complaints.is_empty() { Ok(self.shown) } else { Err(Complaints(self.complaints)) }
    }

    pub(super) fn complain(&mut self, complaint: impl Into<String>) {
        self.complaints.push(complaint.into());
    }

    pub(super) fn show(&mut self, name: &'static str, value: impl Into<Value>) {
        self.shown.insert(name, value.into());
    }

    /// The flag's text, else the variable's; an empty variable is one that is not set.
    pub(super) fn given(&self, name: &str, flag: Option<&str>) -> Option<Given> {
        if let Some(text) = flag {
            return Some(Given { text: text.to_owned(), from: format!("--{name}") });
        }
        let variable = variable(name);
        let text = (self.environment)(&variable).filter(|text| !text.is_empty())?;
        Some(Given { text, from: variable })
    }

    /// The text of a variable that no flag stands for; an empty one is not set.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|text| !text.is_empty())
    }

    /// A value of any type that says by itself what is wrong with a text.
    fn value<T>(
        &mut self,
        name: &'static str,
        flag: Option<&str>,
        default: T,
        parse: impl Fn(&str) -> Result<T, String>,
        shown: impl Fn(&T) -> Value,
    ) -> T {
        let value = match self.given(name, flag) {
            None => default,
            Some(Given { text, from }) => match parse(text.trim()) {
                Ok(value) => value,
                Err(problem) => {
                    self.complain(format!("{from}: {problem}"));
                    default
                }
            },
        };
        self.shown.insert(name, shown(&value));
        value
    }

    pub(super) fn address(
        &mut self,
        name: &'static str,
        flag: Option<&str>,
        default: (Ipv4Addr, u16),
    ) -> SocketAddr {
        let problem =
            |text: &str| format!("`{text}` is not an address; write it like 127.0.0.1:8080");
        let parse = |text: &str| text.parse().map_err(|_| problem(text));
        self.value(name, flag, default.into(), parse, as_text)
    }

    pub(super) fn level(
        &mut self,
        name: &'static str,
        flag: Option<&str>,
        default: LevelFilter,
    ) -> Targets {
        let problem = |text: &str| {
            format!("`{text}` is not a level; write error, warn, info, debug or trace")
        };
        // A word alone would be read as the name of a part.
        let known = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
        let parse = |text: &str| {
            let all_known = text.split(',').all(|part| known(part.trim()));
            all_known.then(|| text.parse().ok()).flatten().ok_or_else(|| problem(text))
        };
        self.value(name, flag, Targets::new().with_default(default), parse, as_text)
    }

    pub(super) fn choice<T>(&mut self, name: &'static str, flag: Option<&str>, default: T) -> T
    where
        T: FromStr + Choices,
    {
        let parse = |text: &str| {
            text.to_lowercase()
                .parse()
                .map_err(|_| format!("`{text}` is none of {}", T::CHOICES.join(", ")))
        };
        self.value(name, flag, default, parse, T::shown)
    }

    /// A text that nothing needs.
    pub(super) fn text(&mut self, name: &'static str, flag: Option<&str>) -> Option<String> {
        let text = self.given(name, flag)?.text;
        self.show(name, text.clone());
        Some(text)
    }

    pub(super) fn optional_port(&mut self, name: &'static str, flag: Option<&str>) -> Option<u16> {
        let Given { text, from } = self.given(name, flag)?;
        let port = text.trim().parse();
        if port.is_err() {
            self.complain(format!(
                "{from}: `{text}` is not a port; write a number from 0 to 65535"
            ));
        }
        port.ok()
    }

    pub(super) fn count<T>(
        &mut self,
        name: &'static str,
        flag: Option<&str>,
        default: T,
        allowed: RangeInclusive<T>,
    ) -> T
    where
        T: FromStr + Display + PartialOrd + Copy + Into<Value>,
    {
        let parse = |text: &str| {
            let problem = || {
                format!("`{text}` is not a number from {} to {}", allowed.start(), allowed.end())
            };
            text.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(problem)
        };
        self.value(name, flag, default, parse, |number| (*number).into())
    }

    pub(super) fn size(&mut self, name: &'static str, flag: Option<&str>, default: u64) -> u64 {
        let parse = |text: &str| match text.parse::<Size>() {
            Ok(Size(0)) => Err("0 would refuse every body; write a size like 256Mi".to_owned()),
            Ok(Size(bytes)) => Ok(bytes),
            Err(error) => Err(error.to_string()),
        };
        self.value(name, flag, default, parse, |bytes| as_text(&Size(*bytes)))
    }

    /// The address of a hub.
    pub(super) fn hub(&mut self, name: &'static str, flag: Option<&str>) -> String {
        let parse = |text: &str| match Hub::at(text) {
            Ok(hub) => Ok(hub.as_str().to_owned()),
            Err(error) => Err(error.to_string()),
        };
        self.value(name, flag, "https://huggingface.co".to_owned(), parse, as_text)
    }

    /// A length of time longer than none.
    pub(super) fn duration(
        &mut self,
        name: &'static str,
        flag: Option<&str>,
        default: Duration,
    ) -> Duration {
        let parse = |text: &str| match duration(text) {
            Ok(Duration::ZERO) => {
                Err(format!("`{text}` is no time at all; write it like 60s or 5m"))
            }
            other => other,
        };
        self.value(name, flag, default, parse, shown)
    }

    /// A length of time; none is allowed.
    pub(super) fn duration_or_none(
        &mut self,
        name: &'static str,
        flag: Option<&str>,
        default: Duration,
    ) -> Duration {
        self.value(name, flag, default, duration, shown)
    }

    /// A file or folder that may be named or not.
    pub(super) fn path(&mut self, name: &'static str, flag: Option<&str>) -> Option<PathBuf> {
        let path = PathBuf::from(self.given(name, flag)?.text);
        self.show(name, path.to_string_lossy());
        Some(path)
    }

    pub(super) fn folder(
        &mut self,
        name: &'static str,
        flag: Option<&str>,
        default: impl FnOnce() -> Option<PathBuf>,
    ) -> PathBuf {
        let folder = self.given(name, flag).map(|given| PathBuf::from(given.text)).or_else(default);
        if folder.is_none() {
            self.complain(format!(
                "--{name} is needed, since neither HOME nor {} is set",
                variable(name)
            ));
        }
        let folder = folder.unwrap_or_default();
        // Engines run elsewhere: a path must mean the same there.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        self.show(name, folder.to_string_lossy());
        folder
    }
}

/// The variable that stands in for the flag `name`.
pub(super) fn variable(name: &str) -> String {
    let mut known =
        VARIABLES.iter().chain(super::rules::VARIABLES).chain(super::routing::VARIABLES);
    match known.find(|(flag, _)| *flag == name) {
        Some((_, variable)) => (*variable).to_owned(),
        None => format!("FLEXINFER_{}", name.to_uppercase().replace('-', "_")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<flexinfer_crds::Duration>().map(Into::into).map_err(|error| error.to_string())
}

fn shown(duration: &Duration) -> Value {
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    as_text(&flexinfer_crds::Duration::from_millis(milliseconds))
}

fn as_text(value: &impl Display) -> Value {
    Value::String(value.to_string())
}

/// What may be chosen from.
pub(super) trait Choices {
    const CHOICES: &'static [&'static str];

    fn shown(&self) -> Value;
}

impl Choices for bool {
    const CHOICES: &'static [&'static str] = &["true", "false"];

    fn shown(&self) -> Value {
        (*self).into()
    }
}

impl Choices for flexinfer_core::routing::LabelRouting {
    const CHOICES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    fn shown(&self) -> Value {
        as_text(self)
    }
}

impl Choices for flexinfer_telemetry::log::Format {
    const CHOICES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    fn shown(&self) -> Value {
        as_text(self)
    }
}
