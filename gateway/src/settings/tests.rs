//! Flags and variables as operators write them.

use clap::{CommandFactory, Parser};

use super::*;

fn read(flags: &[&str], variables: &[(&str, &str)]) -> Result<Settings, Complaints> {
    let line = ["flexinfer-gateway", "local", "models"].iter().chain(flags);
    let Command::Local(local) = CommandLine::try_parse_from(line).unwrap().command else {
        panic!("another command");
    };
    let environment = |name: &str| {
        let home = [("HOME", "/home/me")];
        let mut all = variables.iter().chain(&home);
        all.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    Settings::local(&local.serve, environment)
}

#[test]
fn the_defaults() {
    let settings = read(&["--threads", "2"], &[]).unwrap();
    insta::assert_snapshot!(settings.page());
}

#[test]
fn a_flag_wins_over_its_variable_and_a_variable_over_the_default() {
    let variables =
        [("PROXY_QUEUE_TIMEOUT", "90s"), ("PROXY_MAX_QUEUE_SIZE", "7"), ("FLEXINFER_MAX_BODY", "")];
    let settings = read(&["--queue-timeout", "2m", "--port", "0"], &variables).unwrap();
    assert_eq!(settings.queue.queue_timeout, Duration::from_mins(2));
    assert_eq!(settings.queue.max_queue, 7);
    assert_eq!(settings.limits.max_body, 256 << 20, "an empty variable is one that is not set");
    assert_eq!(settings.listen.to_string(), "127.0.0.1:0");
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let flags = [
        "--listen",
        "8080",
        "--max-body",
        "lots",
        "--queue-timeout",
        "60",
        "--cold-start-timeout",
        "0",
        "--vram-budget",
        "gpu0",
        "--vram-budget",
        "a=1Ki",
        "--pvc",
        "data=relative",
        "--log-format",
        "xml",
        "--threads",
        "0",
        "--log-level",
        "loud",
        "--upstream-attempts",
        "9",
        "--backoff-initial-wait",
        "1m",
    ];
    let variables = [("PROXY_MAX_QUEUE_SIZE", "0"), ("PROXY_BACKOFF_ENABLED", "perhaps")];
    let complaints = read(&flags, &variables).unwrap_err();
    insta::assert_snapshot!(complaints);
}

#[test]
fn budgets_and_claims_come_from_flags_or_a_list() {
    let settings = read(
        &["--vram-budget", "a=24Gi", "--vram-budget", "b=512Mi"],
        &[("FLEXINFER_PVC", "data=/srv/data")],
    );
    let settings = settings.unwrap();
    assert_eq!(settings.vram_budgets, [("a".to_owned(), 24 * 1024), ("b".to_owned(), 512)].into());
    assert_eq!(settings.claims, [("data".to_owned(), "/srv/data".into())].into());
}

#[test]
fn secrets_are_not_shown() {
    let settings = read(&[], &[("HF_TOKEN", "hf_secret")]).unwrap();
    assert!(!settings.page().contains("hf_secret"));
    assert!(settings.page().contains("HF_TOKEN = set (not shown)"));
}

#[test]
fn the_help_of_local() {
    let mut command = CommandLine::command();
    let local = command.find_subcommand_mut("local").unwrap();
    insta::assert_snapshot!(local.render_long_help());
}

#[test]
fn the_command_line_holds_together() {
    CommandLine::command().debug_assert();
}
