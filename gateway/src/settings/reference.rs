//! `docs/reference/settings.md`, made from the command line's own words and held against the page.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory};

use super::CommandLine;
use super::reader::variable;

const INTRODUCTION: &str = "\
# Settings of `flexinfer-gateway local`

Made from the command line's own words; do not edit. A flag wins over its variable, and an empty variable is one that is not
set. What is in force is printed by `--print-settings` and shown at `/debug/config`, secrets masked. Durations are written
like `90s`, `5m` or `1h30m`, sizes like `256Mi`, `1Gi` or `1000000`. `--check` says what is wrong with settings, keys file and
Models, and ends; its status is 1 where anything is.

Two secrets come from variables alone, since flags are seen by everybody on a machine: `HF_TOKEN`, for models on the hub
that are not public, and `PROXY_AUTH_TOKEN`, the one key of all callers where there is no `--keys-file`.
";

fn page() -> String {
    let mut command = CommandLine::command();
    command.build();
    let local = command.find_subcommand("local").expect("there is such a subcommand");
    let flags = || local.get_arguments().filter(|flag| flag.get_help_heading().is_some());
    let mut headings: Vec<&str> = Vec::new();
    for heading in flags().filter_map(Arg::get_help_heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    let mut page = INTRODUCTION.to_owned();
    for heading in headings {
        write!(
            page,
            "\n## {heading}\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n"
        )
        .unwrap();
        for flag in flags().filter(|flag| flag.get_help_heading() == Some(heading)) {
            page.push_str(&row(flag));
        }
    }
    page
}

/// Takes the help apart: `What it means [VARIABLE] [default: value]`.
fn row(flag: &Arg) -> String {
    let name = flag.get_long().expect("every setting has a long flag");
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let mut parts = help.split(" [").map(|part| part.trim_end_matches(']').trim());
    let meaning = parts.next().unwrap_or_default();
    let mut told = parts.next().unwrap_or_default();
    let list = told.strip_suffix(", separated by commas");
    told = list.unwrap_or(told);
    assert_eq!(told, variable(name), "--{name}: its help names another variable than it reads");
    let default = parts.next().map_or_else(
        || "–".to_owned(),
        |text| {
            let value = text.strip_prefix("default: ").unwrap_or(text);
            let plain = value.contains(' ');
            if plain { value.to_owned() } else { format!("`{value}`") }
        },
    );
    let value = flag.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
    let commas = if list.is_some() { " (in the variable separated by commas)" } else { "" };
    format!("| `--{name} {value}` | `{told}` | {default} | {meaning}{commas} |\n")
}

#[test]
fn the_page_of_settings_is_fresh() {
    let test = "-p flexinfer-gateway --lib page_of_settings";
    flexinfer_testkit::reference::fresh("settings.md", &page(), test).unwrap();
}
