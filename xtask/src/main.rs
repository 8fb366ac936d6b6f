//! `cargo xtask COMMAND`: everything a person does with this project beyond plain cargo. One file per
//! command. It builds on std and little else, because it is the first thing a new machine compiles.

mod bench;
mod bench_node;
mod browser;
mod cache;
mod check;
mod clients;
mod e2e;
mod endurance;
mod fuzz;
mod gateway;
mod generate;
mod llamacpp;
mod others;
mod prerequisites;
mod program;
mod quickstart;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Build, run, test and measure FlexInfer", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the gateway and serve examples/quickstart: three simulated models on one machine
    Quickstart(quickstart::Arguments),
    /// Everything a change must pass, on a fresh machine too; .ci/run calls this
    Test(test::Arguments),
    /// Crate arrows, orphan files, stale generated files, broken links
    Check,
    /// Write the files that are made from the types: custom resource definitions, and pages about them
    Generate(generate::Arguments),
    /// CPU and latency of the gateway beside a bare Pingora proxy, nginx, HAProxy, Envoy and routers, in one run
    Bench(bench::Arguments),
    /// The flash loader beside plain copies, and the scheduler's extender beside one that echoes
    BenchNode(bench_node::Arguments),
    /// The gateway in front of a real llama-server, built once and kept
    TestLlamacpp(llamacpp::Arguments),
    /// Against a real Kubernetes control plane, built once and kept
    E2e(e2e::Arguments),
    /// Look for bytes that break what reads them
    Fuzz(fuzz::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Quickstart(arguments) => quickstart::run(&arguments),
        Task::Test(arguments) => test::run(&arguments),
        Task::Check => check::run(),
        Task::Generate(arguments) => generate::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::BenchNode(arguments) => bench_node::run(&arguments),
        Task::TestLlamacpp(arguments) => llamacpp::run(&arguments),
        Task::E2e(arguments) => e2e::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
