//! `cargo xtask test`: everything a change must pass, from a fresh machine on. Every step is run even when
//! one has failed, so that one run tells all there is to mend.

mod counts;
mod failures;
mod harness;
mod steps;

use anyhow::{Result, bail};
use clap::Args;

use crate::{browser, check, clients, e2e, endurance, fuzz, llamacpp, prerequisites, program};
pub(crate) use counts::Counts;
pub(crate) use harness::tests;
pub(crate) use steps::{Steps, watched};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Also what takes minutes: the documentation build, llama.cpp with a real model, the short bench
    #[arg(long)]
    full: bool,
    /// Only the steps whose name holds this, as the summary spells them
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::new(arguments.only.clone());
    steps.run("prerequisites", |_| prerequisites::ensure(&prerequisites::BUILD));
    steps.command("format", program::cargo().args(["fmt", "--all", "--check"]));
    steps.command("lints", &mut lints(&["--all-targets"]));
    steps.command("lints of the tests on a cluster", &mut lints(&["--test", "suite"]));
    steps.run("arrows, files, links", |_| check::run());
    steps.run("Rust tests", |counts| tests(counts, |again| Ok(workspace_tests(again))));
    clients::steps(&mut steps);
    browser::steps(&mut steps);
    fuzz::steps(&mut steps);
    endurance::steps(&mut steps, arguments.full);
    llamacpp::steps(&mut steps, arguments.full);
    e2e::steps(&mut steps, arguments.full);
    licences(&mut steps);
    if arguments.full {
        let mut docs = program::cargo();
        docs.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        steps.command("documentation", &mut docs);
        let mut kills = node_test("killed_at_any_moment");
        steps.command("loads killed 200 times", kills.env("FLEXINFER_KILLS", "200"));
        let mut many = node_test("a_great_many_small_files");
        steps.command("a load of 100,000 files", many.env("FLEXINFER_FILES", "100000"));
        steps.run("short bench", |_| crate::bench::run(&crate::bench::Arguments::quick()));
        steps.run("bench of the node", |_| {
            crate::bench_node::run(&crate::bench_node::Arguments::full())
        });
    }
    let failed = steps.summary();
    if failed > 0 {
        bail!("{failed} step(s) failed");
    }
    Ok(())
}

/// All tests of the workspace, or those with these names and nothing beside them.
fn workspace_tests(names: &[String]) -> std::process::Command {
    let mut test = program::cargo();
    test.args(["test", "--workspace", "--no-fail-fast"]);
    if !names.is_empty() {
        test.args(["--", "--exact", "--test-threads=1"]).args(names);
    }
    test
}

/// One test of the node's program.
fn node_test(name: &str) -> std::process::Command {
    let mut test = program::cargo();
    test.args(["test", "--package", "flexinfer-node", "--test", "suite", name]);
    test
}

/// Of these targets. All of them are not those that a plain `cargo test` leaves alone.
fn lints(targets: &[&str]) -> std::process::Command {
    let mut clippy = program::cargo();
    clippy.args(["clippy", "--workspace"]).args(targets).args(["--", "-D", "warnings"]);
    clippy
}

fn licences(steps: &mut Steps) {
    const STEP: &str = "licences and bans";
    if program::find("cargo-deny").is_none() {
        return steps.skip(STEP, "cargo-deny is not installed (cargo install cargo-deny)");
    }
    let mut deny = program::cargo();
    deny.args(["deny", "--offline", "check", "licenses", "bans", "sources"]);
    steps.command(STEP, &mut deny);
}
