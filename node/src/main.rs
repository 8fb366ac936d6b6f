//! The node's program: reads the command line, runs one subcommand and gives its exit status.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use flexinfer_node::ending::Ending;
use flexinfer_node::{agent, bench, check, clean, fetch, flash, in_root};
use flexinfer_telemetry::log;
use tokio::runtime::{Builder, Runtime};

/// What a GPU node needs: its labels, weights brought to where the engine reads them, and how fast it is
/// with them.
#[derive(Debug, Parser)]
#[command(name = "flexinfer-node", version, propagate_version = true, max_term_width = 100)]
struct CommandLine {
    #[command(flatten)]
    log: log::Arguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Label the node with its GPUs, tell what they do, and mark it when its cloud takes it away
    Agent(agent::Arguments),
    /// Download a model's files from a hub into a folder; run again, it goes on where it stopped
    Fetch(fetch::Arguments),
    /// Look whether the weights in a file or folder are whole, as far as their format tells
    Check(check::Arguments),
    /// Copy weights from a volume to memory, by many readers at once; run again, it skips what is whole
    Flash(flash::Arguments),
    /// Remove a copy that `flash` has made, such as the one in memory of a model that is gone
    Clean(clean::Arguments),
    /// Measure how fast a model is through the gateway
    Bench(Box<bench::Arguments>),
    /// Run a tool in another root: what the agent does with the host's tools
    #[command(hide = true)]
    InRoot(in_root::Arguments),
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    if let Command::InRoot(arguments) = &line.command {
        return in_root::run(arguments);
    }
    match run(line) {
        Ok(ending) => ending.into(),
        Err(error) => {
            eprintln!("flexinfer-node: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The agent waits far more than it works, on nodes with a great many cores, of which each would have a thread.
fn runtime(command: &Command) -> io::Result<Runtime> {
    let mut builder = match command {
        Command::Agent(_) => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.enable_all().build()
}

fn run(line: CommandLine) -> anyhow::Result<Ending> {
    log::begin(line.log.log_format, line.log.log_level).context("the log cannot be set up")?;
    let runtime = runtime(&line.command).context("the runtime cannot be started")?;
    let ending = runtime.block_on(async {
        match line.command {
            Command::Agent(arguments) => agent::run(&arguments).await,
            Command::Fetch(arguments) => fetch::run(&arguments).await,
            Command::Check(arguments) => check::run(arguments).await,
            Command::Flash(arguments) => flash::run(arguments).await,
            Command::Clean(arguments) => clean::run(arguments).await,
            Command::Bench(arguments) => bench::run(&arguments).await,
            Command::InRoot(_) => anyhow::bail!("another root is entered before anything else"),
        }
    });
    // Whatever still runs in the background belongs to something that was given up on.
    runtime.shutdown_background();
    ending
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use flexinfer_testkit::reference::{fresh, program};

    use super::CommandLine;

    const INTRODUCTION: &str = "\
# Settings of `flexinfer-node`

Made from the command line's own words; do not edit. A flag wins over its variable. What each subcommand does is told in
[the node's program](../node.md) and [the agent](../agent.md).
";

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn the_page_of_settings_is_fresh() {
        let page = program(&CommandLine::command(), INTRODUCTION);
        let test = "-p flexinfer-node --bins page_of_settings";
        fresh("node-settings.md", &page, test).unwrap();
    }
}
