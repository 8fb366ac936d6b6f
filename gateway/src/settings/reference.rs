//! `docs/reference/settings.md`, made from the command line's own words and held against the page.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory};

use super::CommandLine;
use super::reader::variable;

const INTRODUCTION: &str = "\
# Settings of `flexinfer-gateway`

Made from the command line's own words; do not edit. A flag wins over its variable, and an empty variable is one that is not
set. What is in force is printed by `--print-settings` and shown at `/debug/config`, secrets masked. Durations are written
like `90s`, `5m` or `1h30m`, sizes like `256Mi`, `1Gi` or `1000000`. `--check` says what is wrong with settings, keys file,
certificates and, in `local`, Models, and ends; its status is 1 where anything is. `local DIR` has all of these but those under
Cluster, `kubernetes` all but those that are marked as local; `simulate --help` tells its own.

Two secrets come from variables alone, since flags are seen by everybody on a machine: `HF_TOKEN`, for models on the hub
that are not public, and `PROXY_AUTH_TOKEN`, the one key of all callers where there is no `--keys-file`.
";

fn page() -> String {
    let mut command = CommandLine::command();
    command.build();
    let of = |name| command.find_subcommand(name).expect("there is such a subcommand");
    let (local, cluster) = (of("local"), of("kubernetes"));
    let in_both = |flag: &&Arg| local.get_arguments().any(|other| other.get_id() == flag.get_id());
    let flags = || {
        let further = cluster.get_arguments().filter(|flag| !in_both(flag));
        let all = local.get_arguments().chain(further);
        all.filter(|flag| flag.get_help_heading().is_some())
    };
    let in_cluster =
        |flag: &Arg| cluster.get_arguments().any(|other| other.get_id() == flag.get_id());
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
            page.push_str(&row(flag, if in_cluster(flag) { "" } else { " (local)" }));
        }
    }
    page
}

/// Takes the help apart: `What it means [VARIABLE] [default: value]`.
fn row(flag: &Arg, only: &str) -> String {
    let name = flag.get_long().expect("every setting has a long flag");
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let mut parts = help.split(" [").map(|part| part.trim_end_matches(']').trim());
    let meaning = parts.next().unwrap_or_default();
    let mut told = parts.next().unwrap_or_default();
    let (first, other) = told.split_once("; else ").unwrap_or((told, ""));
    let list = first.strip_suffix(", separated by commas");
    told = list.unwrap_or(first);
    assert_eq!(told, variable(name), "--{name}: its help names another variable than it reads");
    let other = if other.is_empty() { String::new() } else { format!(", else `{other}`") };
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
    format!("| `--{name} {value}` | `{told}`{other} | {default} | {meaning}{commas}{only} |\n")
}

#[test]
fn the_page_of_settings_is_fresh() {
    let test = "-p flexinfer-gateway --lib page_of_settings";
    flexinfer_testkit::reference::fresh("settings.md", &page(), test).unwrap();
}
