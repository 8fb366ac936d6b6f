//! The controller's program: reads the command line, runs one subcommand and gives its exit status.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use flexinfer_controller::{run, scheduler};
use flexinfer_telemetry::{log, traces};

/// Turns Models into running engines, and decides who holds a shared GPU.
#[derive(Debug, Parser)]
#[command(name = "flexinfer-controller", version, propagate_version = true, max_term_width = 100)]
struct CommandLine {
    #[command(flatten)]
    log: log::Arguments,
    #[command(flatten)]
    traces: traces::Arguments,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look after Models; what is done without a subcommand, with settings from the environment
    Run(Box<run::Arguments>),
    /// Tell kube-scheduler which nodes can hold a pod with GPUs, and which suit it best
    Scheduler(Box<scheduler::Arguments>),
}

/// `run` alone, to read its settings from the environment.
#[derive(Debug, Parser)]
struct RunAlone {
    #[command(flatten)]
    arguments: run::Arguments,
}

fn main() -> ExitCode {
    match start(CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("flexinfer-controller: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(line: CommandLine) -> anyhow::Result<()> {
    let command = match line.command {
        Some(command) => command,
        None => Command::Run(Box::new(RunAlone::parse_from(["flexinfer-controller"]).arguments)),
    };
    log::begin(line.log.log_format, line.log.log_level).context("the log cannot be set up")?;
    let service = match command {
        Command::Run(_) => "flexinfer-controller",
        Command::Scheduler(_) => "flexinfer-scheduler",
    };
    let traces = traces::begin(&line.traces, service)?;
    let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
    let ending = runtime.block_on(async {
        match command {
            Command::Run(arguments) => run::run(&arguments).await,
            Command::Scheduler(arguments) => scheduler::run(&arguments).await,
        }
    });
    // Whatever still runs in the background belongs to something that was given up on.
    runtime.shutdown_background();
    traces.end();
    ending
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use flexinfer_testkit::reference::{fresh, program};

    use super::CommandLine;

    const INTRODUCTION: &str = "\
# Settings of `flexinfer-controller`

Made from the command line's own words; do not edit. A flag wins over its variable. `--print-settings` shows what is in force.
Images are named by variables alone: [which ones](../kubernetes-objects.md#images). The API server is reached by the pod's
service account, elsewhere by `KUBECONFIG`.

The chart sets most of these; any other is set by `controller.env` or `scheduler.env`.
";

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn the_page_of_settings_is_fresh() {
        let page = program(&CommandLine::command(), INTRODUCTION);
        let test = "-p flexinfer-controller --bins page_of_settings";
        fresh("controller-settings.md", &page, test).unwrap();
    }
}
