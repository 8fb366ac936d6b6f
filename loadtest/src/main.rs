//! The load generator: drives proxies with the same work in the same minutes and says what each cost.
//! `cargo xtask bench` builds everything and calls it.

mod binaries;
mod compare;
mod cpu;
mod crowd;
mod kills;
mod memory;
mod names;
mod node;
mod open_files;
mod probes;
mod requests;
mod streams;
mod targets;
mod work;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "flexinfer-loadtest", about = "Load for gateways, and what it costs them")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// The gateway, a bare Pingora proxy and those of others side by side, before the same upstream
    Compare(compare::Arguments),
    /// The flash loader beside plain copies, and the scheduler's extender beside one that echoes
    Node(node::Arguments),
    /// The gateway's memory while clients ask for models that nobody has
    Names(names::Arguments),
    /// The gateway ended under load, by SIGTERM and by SIGKILL, and every request accounted for
    Kills(kills::Arguments),
    /// The extender that echoes (started by `node`)
    #[command(hide = true)]
    ExtenderEcho,
}

fn main() -> ExitCode {
    let task = Arguments::parse().task;
    open_files::as_many_as_allowed();
    // One thread: the machine's other cores belong to what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome =
        runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(task)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Compare(arguments) => compare::run(&arguments).await,
        Task::Node(arguments) => node::run(&arguments).await,
        Task::Names(arguments) => names::run(&arguments).await,
        Task::Kills(arguments) => kills::run(&arguments).await,
        Task::ExtenderEcho => node::echo::run().await,
    }
}
