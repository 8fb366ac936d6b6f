//! The options of `spec.config` that a backend knows, as tables: one row says an option's name, its
//! type and what it becomes. Command lines, type checks and the hint for a misspelt name all come
//! from the same row.

use super::config::field;
use super::{Complaint, Config};

/// One option a backend knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    takes: Takes,
    becomes: Becomes,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Takes {
    Text,
    Integer,
    Number,
    NumberOrText,
    Flag,
    Switch,
    Texts,
    Json,
    Variables,
    Duration,
}

/// What an option becomes.
#[derive(Clone, Copy, Debug)]
enum Becomes {
    /// Read by the backend's own code, or by other parts of the gateway.
    Nothing,
    /// `--name value`.
    Option(&'static str),
    /// `--name` if true, else nothing; or one of two names.
    Switch { on: Option<&'static str>, off: Option<&'static str> },
    /// A variable of the environment; a flag becomes `true` or `false`.
    Variable(&'static str),
    /// `name=value` in the backend's list of overrides.
    Pair(&'static str),
}

#[cfg(test)]
impl Takes {
    /// The type as the documentation names it.
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "whole number",
            Self::Number | Self::NumberOrText => "number",
            Self::Flag => "true or false",
            Self::Switch => "on, off, auto",
            Self::Texts => "text or list of texts",
            Self::Json => "object",
            Self::Variables => "object of texts",
            Self::Duration => "duration",
        }
    }
}

impl Key {
    /// An option that code reads.
    pub(super) const fn read(name: &'static str, takes: Takes) -> Self {
        Self { name, takes, becomes: Becomes::Nothing }
    }

    /// An option that becomes `--flag value`.
    pub(super) const fn option(name: &'static str, takes: Takes, flag: &'static str) -> Self {
        Self { name, takes, becomes: Becomes::Option(flag) }
    }

    /// A boolean that becomes `flag` when true and nothing when false.
    pub(super) const fn when_true(name: &'static str, flag: &'static str) -> Self {
        let becomes = Becomes::Switch { on: Some(flag), off: None };
        Self { name, takes: Takes::Flag, becomes }
    }

    /// A boolean that becomes `flag` when false and nothing when true.
    pub(super) const fn when_false(name: &'static str, flag: &'static str) -> Self {
        let becomes = Becomes::Switch { on: None, off: Some(flag) };
        Self { name, takes: Takes::Flag, becomes }
    }

    /// A boolean that becomes one of two flags.
    pub(super) const fn either(name: &'static str, on: &'static str, off: &'static str) -> Self {
        let becomes = Becomes::Switch { on: Some(on), off: Some(off) };
        Self { name, takes: Takes::Flag, becomes }
    }

    /// An option that becomes a variable of the environment.
    pub(super) const fn variable(name: &'static str, takes: Takes, variable: &'static str) -> Self {
        Self { name, takes, becomes: Becomes::Variable(variable) }
    }

    /// An option that becomes `pair=value` in a list of overrides.
    pub(super) const fn pair(name: &'static str, takes: Takes, pair: &'static str) -> Self {
        Self { name, takes, becomes: Becomes::Pair(pair) }
    }

    /// The option's row in the documentation: name, type, what it becomes.
    #[cfg(test)]
    pub(super) fn row(&self) -> String {
        let becomes = match self.becomes {
            Becomes::Nothing => String::new(),
            Becomes::Option(flag) => format!("`{flag}`"),
            Becomes::Switch { on, off } => {
                let told = |value, flag: &str| format!("{value}: `{flag}`");
                let on = on.map(|flag| told(true, flag));
                on.into_iter()
                    .chain(off.map(|flag| told(false, flag)))
                    .collect::<Vec<_>>()
                    .join(", ")
            }
            Becomes::Variable(variable) => format!("`{variable}` in the environment"),
            Becomes::Pair(pair) => format!("`{pair}` in `--overrides`"),
        };
        let becomes = if becomes.is_empty() { "see above".to_owned() } else { becomes };
        format!("| `{}` | {} | {becomes} |", self.name, self.takes.name())
    }

    /// The value as text, or the complaint about it.
    fn text(&self, config: Config<'_>) -> Result<Option<String>, Complaint> {
        let name = self.name;
        Ok(match self.takes {
            Takes::Text => config.text(name)?.map(str::to_owned),
            Takes::Integer => config.integer(name)?.map(|number| number.to_string()),
            Takes::Number => config.number(name)?,
            Takes::NumberOrText => config.number_or_text(name)?,
            Takes::Flag => config.flag(name)?.map(|flag| flag.to_string()),
            Takes::Switch => config.switch(name)?.map(str::to_owned),
            Takes::Texts => config.texts(name)?.map(|texts| texts.join(",")),
            Takes::Json => config.json(name)?,
            Takes::Variables => config.variables(name)?.map(|_| String::new()),
            Takes::Duration => {
                config.duration(name)?.map(|time| format!("{}s", time.as_secs_f64()))
            }
        })
    }
}

/// The options every backend knows: how its program is started, and what the gateway itself reads.
pub(super) const EVERYWHERE: &[Key] = &[
    Key::read("command", Takes::Texts),
    Key::read("args", Takes::Texts),
    Key::read("env", Takes::Variables),
    Key::read("maxConcurrency", Takes::Integer),
    Key::read("servedModelName", Takes::Text),
    Key::read("preloadOnDeploy", Takes::Flag),
    Key::read("startupTimeout", Takes::Duration),
    Key::read("apiKeySecret", Takes::Text),
    Key::read("engineProtocol", Takes::Text),
    Key::read("maxInputTokens", Takes::Integer),
    Key::read("maxOutputTokens", Takes::Integer),
    Key::read("hfRevision", Takes::Text),
    Key::read("hfAllowPatterns", Takes::Texts),
    Key::read("hfIgnorePatterns", Takes::Texts),
    Key::read("ggufFile", Takes::Text),
    Key::read("modelFile", Takes::Text),
];

/// The arguments that the set options among `keys` become, in the order of the table.
pub(super) fn arguments(config: Config<'_>, keys: &[Key]) -> Result<Vec<String>, Complaint> {
    let mut arguments = Vec::new();
    for key in keys {
        match key.becomes {
            Becomes::Option(flag) => {
                if let Some(value) = key.text(config)? {
                    arguments.extend([flag.to_owned(), value]);
                }
            }
            Becomes::Switch { on, off } => match config.flag(key.name)? {
                Some(true) => arguments.extend(on.map(str::to_owned)),
                Some(false) => arguments.extend(off.map(str::to_owned)),
                None => {}
            },
            Becomes::Nothing | Becomes::Variable(_) | Becomes::Pair(_) => {}
        }
    }
    Ok(arguments)
}

/// The variables that the set options among `keys` become, in the order of the table.
pub(super) fn variables(
    config: Config<'_>,
    keys: &[Key],
) -> Result<Vec<(String, String)>, Complaint> {
    let mut variables = Vec::new();
    for key in keys {
        if let Becomes::Variable(variable) = key.becomes
            && let Some(value) = key.text(config)?
        {
            variables.push((variable.to_owned(), value));
        }
    }
    Ok(variables)
}

/// The `name=value` pairs that the set options among `keys` become, in the order of the table.
pub(super) fn pairs(config: Config<'_>, keys: &[Key]) -> Result<Vec<String>, Complaint> {
    let mut pairs = Vec::new();
    for key in keys {
        if let Becomes::Pair(name) = key.becomes
            && let Some(value) = key.text(config)?
        {
            pairs.push(format!("{name}={value}"));
        }
    }
    Ok(pairs)
}

/// Every complaint about the options: wrong types as errors, unknown names as warnings.
pub(super) fn check(config: Config<'_>, keys: &[Key]) -> Vec<Complaint> {
    let known = || keys.iter().chain(EVERYWHERE);
    let wrong = known().filter_map(|key| key.text(config).err());
    let unknown = config
        .names()
        .filter(|name| known().all(|key| key.name != *name))
        .map(|name| unknown_key(name, known().map(|key| key.name)));
    wrong.chain(unknown).collect()
}

fn unknown_key<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Complaint {
    let hint = match nearest(name, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "use `args` for arguments that only the engine knows".to_owned(),
    };
    Complaint::warning(field(name), format!("unknown option, ignored; {hint}"))
}

/// The known name that is most like `name`, if any is like it at all.
pub(super) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = name.to_lowercase();
    known
        .map(|known| (strsim::jaro_winkler(&wanted, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, known)| known)
}
