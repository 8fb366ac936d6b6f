//! The gateway's program: reads the command line and hands over.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use flexinfer_gateway::metrics::Metrics;
use flexinfer_gateway::rules::Rules;
use flexinfer_gateway::settings::{
    ClusterSettings, Command, CommandLine, KubernetesArguments, LocalArguments, LocalSettings,
    Settings,
};
use flexinfer_gateway::tls::Certificates;
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
    if arguments.check {
        let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
        let _inside = runtime.enter();
        check(&settings.serve)?;
        return local::check(&arguments.models);
    }
    serve(&settings.serve.clone(), local::run(&arguments.models, settings))
}

fn serve_cluster(arguments: &KubernetesArguments) -> anyhow::Result<()> {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let settings = ClusterSettings::new(arguments, &machine, |name| std::env::var(name).ok())?;
    if arguments.print_settings {
        print!("{}", settings.serve.page());
        return Ok(());
    }
    if arguments.check {
        let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
        let _inside = runtime.enter();
        return check(&settings.serve);
    }
    serve(&settings.serve.clone(), kubernetes::run(settings))
}

/// Reads the files that the settings name, as serving would. Must be called in a tokio runtime, as they are followed.
fn check(settings: &Settings) -> anyhow::Result<()> {
    Rules::new(&settings.rules)?;
    if let Some(files) = &settings.tls {
        let metrics = Metrics::new().context("cannot set the metrics up")?;
        Certificates::follow(files, &metrics)?;
    }
    Ok(())
}

/// Gives `serving` the log, the spans, the open files and the threads that it needs, until it ends.
fn serve(
    settings: &Settings,
    serving: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let traces = telemetry::begin(settings)?;
    open_files::allow_many();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.threads)
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let outcome = runtime.block_on(serving);
    // What still runs in the background belongs to requests that were given up on.
    runtime.shutdown_background();
    traces.end();
    outcome
}
