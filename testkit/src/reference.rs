//! Pages of `docs/reference` that are made from the sources: held against what is written there, and written anew
//! where `WRITE_REFERENCE` is set.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use clap::{Arg, Command};

/// What is wrong with a page.
#[derive(Debug)]
pub struct Stale {
    page: PathBuf,
    remedy: String,
}

impl std::fmt::Display for Stale {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { page, remedy } = self;
        write!(formatter, "{} is stale; write it anew: {remedy}", page.display())
    }
}

/// Holds the page called `name` against the `content` that its sources make; `test` is what cargo calls the test that
/// asks.
pub fn fresh(name: &str, content: &str, test: &str) -> Result<(), Stale> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference").join(name);
    let stale =
        || Stale { page: page.clone(), remedy: format!("WRITE_REFERENCE=1 cargo test {test}") };
    if env::var_os("WRITE_REFERENCE").is_some() {
        fs::write(&page, content).map_err(|_| stale())?;
    }
    let written = fs::read_to_string(&page).unwrap_or_default();
    (written == content).then_some(()).ok_or_else(stale)
}

/// The page of a program's settings: the flags that all of its subcommands have, then those of each.
pub fn program(command: &Command, introduction: &str) -> String {
    let mut page = format!("{introduction}\n## Of all subcommands\n{}", settings(command, 3));
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let (name, about) = (subcommand.get_name(), subcommand.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        let tables = settings(subcommand, 3);
        let _infallible = write!(page, "\n## `{name}`\n\n{about}.\n{tables}");
    }
    page
}

/// A table for each group of the flags of `command`; `level` is that of their headings. Once the command has been built,
/// it has those of the command above it too.
fn settings(command: &Command, level: usize) -> String {
    let flags = || command.get_arguments().filter(|flag| !is_usual(flag));
    let heading = |flag: &Arg| flag.get_help_heading().unwrap_or("General").to_owned();
    let mut headings: Vec<String> = Vec::new();
    for found in flags().map(heading) {
        if !headings.contains(&found) {
            headings.push(found);
        }
    }
    let mut page = String::new();
    for wanted in headings {
        let head = "| flag | variable | default | meaning |\n|---|---|---|---|\n";
        let _infallible = write!(page, "\n{} {wanted}\n\n{head}", "#".repeat(level));
        for flag in flags().filter(|flag| heading(flag) == wanted) {
            page.push_str(&row(flag));
        }
    }
    page
}

fn is_usual(flag: &Arg) -> bool {
    ["help", "version"].contains(&flag.get_id().as_str()) || flag.is_hide_set()
}

fn row(flag: &Arg) -> String {
    let variable = flag.get_env().map(|name| format!("`{}`", name.to_string_lossy()));
    let defaults = flag.get_default_values().iter();
    let default = defaults.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
    let default = if default.is_empty() { "–".to_owned() } else { format!("`{default}`") };
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let meaning = cell(&help);
    let words = possible(flag);
    let words = if words.is_empty() { words } else { format!(": {words}") };
    let variable = variable.as_deref().unwrap_or("–");
    format!("| `{}` | {variable} | {default} | {meaning}{words} |\n", written(flag))
}

/// A text in a table. Within code a bar still ends a cell, but `<` begins no tag.
fn cell(text: &str) -> String {
    let text = text.replace('\n', " ").replace('|', "\\|");
    let spans = text.split('`').enumerate();
    let spans = spans.map(|(nth, span)| match nth % 2 {
        0 => span.replace('<', "\\<"),
        _ => span.to_owned(),
    });
    spans.collect::<Vec<_>>().join("`")
}

/// How it is written on a command line.
fn written(flag: &Arg) -> String {
    let named = flag.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let value = named.unwrap_or_else(|| flag.get_id().to_string()).to_uppercase();
    let (Some(long), takes) = (flag.get_long(), flag.get_action().takes_values()) else {
        return value;
    };
    let may_lack = flag.get_num_args().is_some_and(|range| range.min_values() == 0);
    match (takes, may_lack) {
        (false, _) => format!("--{long}"),
        (true, true) => format!("--{long}[=BOOL]"),
        (true, false) => format!("--{long} {value}"),
    }
}

/// The words that it takes, where there are only some.
fn possible(flag: &Arg) -> String {
    let all = flag.get_possible_values();
    let words: Vec<_> = all.iter().map(|value| value.get_name().to_owned()).collect();
    let plain = words.iter().any(|word| word == "true");
    if plain { String::new() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    #[test]
    fn flags_are_told_by_their_headings_with_variable_and_default() {
        let port = Arg::new("port")
            .long("port")
            .default_value("80")
            .help("Where | it <listens>, `<as|such>`");
        let quiet = Arg::new("quiet").long("quiet").action(ArgAction::SetTrue);
        let quiet = quiet.help("Say less").help_heading("Words");
        let command = Command::new("program").arg(port.env("PROGRAM_PORT")).arg(quiet);
        let head = "| flag | variable | default | meaning |\n|---|---|---|---|\n";
        let port =
            "| `--port PORT` | `PROGRAM_PORT` | `80` | Where \\| it \\<listens>, `<as\\|such>` |\n";
        let quiet = "| `--quiet` | – | – | Say less |\n";
        let wanted = format!("\n## General\n\n{head}{port}\n## Words\n\n{head}{quiet}");
        assert_eq!(settings(&command, 2), wanted);
    }

    #[test]
    fn a_page_that_is_not_what_its_sources_make_is_stale() {
        let stale = fresh("no/such/page.md", "content", "-p testkit").unwrap_err();
        assert!(stale.to_string().contains("WRITE_REFERENCE=1 cargo test -p testkit"), "{stale}");
    }
}
