//! `config.command`, `config.args` and `config.env`: a program of the user's own, with `{port}`,
//! `{host}` and `{model}` filled in. Nothing is run through a shell.

use super::config::field;
use super::{Complaint, Config, ModelPlace, Placement};

/// What the user's own options say about the program.
#[derive(Debug, Default)]
pub(super) struct CommandLine {
    /// The program and its first arguments, if `config.command` is set.
    pub(super) command: Option<(String, Vec<String>)>,
    /// Arguments to add at the end.
    pub(super) args: Vec<String>,
    /// Variables to set.
    pub(super) env: Vec<(String, String)>,
}

impl CommandLine {
    /// Reads the three options and fills in the placement.
    pub(super) fn read(config: Config<'_>, placement: &Placement) -> Result<Self, Complaint> {
        let filler = Filler { placement };
        let mut words = Vec::new();
        if let Some(command) = command_words(config)? {
            for word in command {
                words.push(filler.fill("command", &word)?);
            }
        }
        let mut words = words.into_iter();
        let command = words.next().map(|program| (program, words.collect()));
        let mut args = Vec::new();
        for argument in config.texts("args")?.unwrap_or_default() {
            args.push(filler.fill("args", argument)?);
        }
        let mut env = Vec::new();
        for (name, value) in config.variables("env")?.unwrap_or_default() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("`{name}` cannot be the name of a variable");
                return Err(Complaint::error(field("env"), message));
            }
            env.push((name, filler.fill("env", &value)?));
        }
        Ok(Self { command, args, env })
    }
}

/// The words of `config.command`: a list as it stands, or one text split at its spaces.
pub(super) fn command_words(config: Config<'_>) -> Result<Option<Vec<String>>, Complaint> {
    let words = if let Ok(Some(text)) = config.text("command") {
        split(text).ok_or_else(|| {
            Complaint::error(field("command"), "a quote is opened and never closed; close it")
        })?
    } else {
        let Some(list) = config.texts("command")? else { return Ok(None) };
        list.into_iter().map(str::to_owned).collect()
    };
    if words.first().is_none_or(String::is_empty) {
        let message = "empty; write the program to start, such as [\"my-server\", \"--fast\"]";
        return Err(Complaint::error(field("command"), message));
    }
    Ok(Some(words))
}

struct Filler<'p> {
    placement: &'p Placement,
}

impl Filler<'_> {
    fn fill(&self, option: &str, text: &str) -> Result<String, Complaint> {
        let filled = text
            .replace("{port}", &self.placement.port.to_string())
            .replace("{host}", &self.placement.host);
        if !filled.contains("{model}") {
            return Ok(filled);
        }
        match &self.placement.model {
            ModelPlace::Path(model) | ModelPlace::Reference(model) => {
                Ok(filled.replace("{model}", model))
            }
            ModelPlace::Nothing => Err(Complaint::error(
                field(option),
                "uses {model}, and the Model has no spec.source; add one or leave {model} out",
            )),
        }
    }
}

/// Splits at white space; single and double quotes keep a word together. `None` for an open quote.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if matches!(letter, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
