//! The gateway's program: reads the command line and hands over.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use flexinfer_gateway::settings::{Command, CommandLine, LocalArguments, Settings};
use flexinfer_gateway::{local, open_files, telemetry};

// A request allocates a few dozen times, on whichever thread runs it.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Command::Supervise { command } => return local::supervise(&command),
        Command::Simulate(arguments) => simulate(*arguments),
        Command::Local(arguments) => serve_local(&arguments),
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
    let environment = |name: &str| std::env::var(name).ok();
    let settings = Settings::local(&arguments.serve, environment)?;
    if arguments.print_settings {
        print!("{}", settings.page());
        return Ok(());
    }
    telemetry::begin(settings.log_format, settings.log_level.clone())
        .context("the log cannot be set up")?;
    open_files::allow_many();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.threads)
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let outcome = runtime.block_on(local::run(&arguments.models, settings));
    // What still runs in the background belongs to requests that were given up on.
    runtime.shutdown_background();
    outcome
}
