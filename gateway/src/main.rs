//! The gateway's program: reads the command line and hands over.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use flexinfer_gateway::settings::{
    ClusterSettings, Command, CommandLine, KubernetesArguments, LocalArguments, LocalSettings,
    Settings,
};
use flexinfer_gateway::{kubernetes, local, open_files, telemetry};

// A request allocates a few dozen times, on whichever thread runs it: docs/decisions/0011-allocator.md.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Command::Supervise { command } => return local::supervise(&command),
        Command::Simulate(arguments) => simulate(*arguments),
        Command::Local(arguments) => serve_local(&arguments),
        Command::Kubernetes(arguments) => serve_cluster(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("flexinfer-gateway: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn simulate(arguments: flexinfer_simulator::SimulateArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
    runtime.block_on(flexinfer_simulator::run(arguments))
}

fn serve_local(arguments: &LocalArguments) -> anyhow::Result<()> {
    let settings = LocalSettings::new(arguments, |name| std::env::var(name).ok())?;
    if arguments.print_settings {
        print!("{}", settings.serve.page());
        return Ok(());
    }
    let runtime = prepare(&settings.serve)?;
    let outcome = runtime.block_on(local::run(&arguments.models, settings));
    // What still runs in the background belongs to requests that were given up on.
    runtime.shutdown_background();
    outcome
}

fn serve_cluster(arguments: &KubernetesArguments) -> anyhow::Result<()> {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let settings = ClusterSettings::new(arguments, &machine, |name| std::env::var(name).ok())?;
    if arguments.print_settings {
        print!("{}", settings.serve.page());
        return Ok(());
    }
    let runtime = prepare(&settings.serve)?;
    let outcome = runtime.block_on(kubernetes::run(settings));
    runtime.shutdown_background();
    outcome
}

/// The log, the open files and the threads of a process that serves.
fn prepare(settings: &Settings) -> anyhow::Result<tokio::runtime::Runtime> {
    telemetry::begin(settings.log_format, settings.log_level.clone())
        .context("the log cannot be set up")?;
    open_files::allow_many();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.threads)
        .enable_all()
        .build()
        .context("the runtime cannot be started")
}
