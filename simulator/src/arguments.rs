//! The engine as a program: its flags, and running it until it is told to end.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::durations::parse_duration;
use crate::faults::{AnswerFaults, Busy, Cut, DiesAt, DoorWhileLoading, LoadingFaults};
use crate::server::{Ending, Simulator};
use crate::settings::{Settings, Timings};

/// Run an engine without a GPU: every API, with the latencies and faults you set.
///
/// Durations are written 250us, 40ms, 5s or 1m30s.
#[derive(Args, Clone, Debug)]
pub struct SimulateArgs {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,

    /// Port to listen on; 0 takes a free one and prints it.
    #[arg(long, default_value_t = 8000)]
    pub port: u16,

    /// Name the engine answers to; may be given several times.
    #[arg(long = "model", value_name = "NAME", default_value = "simulated")]
    pub models: Vec<String>,

    /// File or folder that is really read while loading.
    #[arg(long, value_name = "PATH")]
    pub model_path: Option<PathBuf>,

    /// Changes every answer; equal seeds give equal answers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Requests that generate at once; more wait.
    #[arg(long, default_value_t = 256)]
    pub slots: usize,

    /// Tokens of an answer whose request sets no limit.
    #[arg(long, value_name = "TOKENS", default_value_t = 48)]
    pub answer_tokens: usize,

    /// Tokens that prompt and answer may have together; by default more than any body holds.
    #[arg(long, value_name = "TOKENS", default_value_t = 67_108_864)]
    pub context_window: usize,

    /// Blocks of 16 tokens in the prefix cache; 0 switches it off.
    #[arg(long, value_name = "BLOCKS", default_value_t = 4_096)]
    pub prefix_cache_blocks: usize,

    /// Close a connection that had no request for so long; vLLM's server does so after 5s.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub keep_alive: Option<Duration>,

    /// Keep the requests and show them at /simulate/requests.
    #[arg(long)]
    pub log_requests: bool,

    /// Let requests ask for faults by x-simulate-* headers, such as x-simulate-cut-after-tokens: 3.
    #[arg(long)]
    pub allow_request_faults: bool,

    /// How long the engine takes.
    #[command(flatten)]
    pub timing: TimingArgs,

    /// What goes wrong.
    #[command(flatten)]
    pub fault: FaultArgs,
}

/// Flags that set how long the engine takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Timings")]
pub struct TimingArgs {
    /// Time to load; with --model-path at least this long.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_duration)]
    pub load_time: Duration,

    /// Time to the first token, prompt apart.
    #[arg(long, value_name = "DURATION", default_value = "40ms", value_parser = parse_duration)]
    pub time_to_first_token: Duration,

    /// Time from one token to the next.
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = parse_duration)]
    pub time_per_token: Duration,

    /// Time for each prompt token that the prefix cache does not hold.
    #[arg(long, value_name = "DURATION", default_value = "100us", value_parser = parse_duration)]
    pub time_per_prompt_token: Duration,

    /// Time for each step of making a picture.
    #[arg(long, value_name = "DURATION", default_value = "50ms", value_parser = parse_duration)]
    pub image_time_per_step: Duration,
}

/// Flags that set what goes wrong.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Faults")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own, free to combine")]
pub struct FaultArgs {
    /// Die while loading, at a share (30%) or after a time (500ms).
    #[arg(long, value_name = "WHEN", value_parser = DiesAt::parse)]
    pub die_while_loading: Option<DiesAt>,

    /// Never finish loading.
    #[arg(long)]
    pub hang_while_loading: bool,

    /// What is found at the port while loading.
    #[arg(long, value_enum, value_name = "DOOR", default_value = "answers")]
    pub while_loading: DoorWhileLoading,

    /// Say 200 at /health before the model is loaded.
    #[arg(long)]
    pub lie_about_readiness: bool,

    /// Never open the port.
    #[arg(long)]
    pub never_open_port: bool,

    /// Answer /health with bytes that are not HTTP.
    #[arg(long)]
    pub garbage_health: bool,

    /// Refuse every request with this status.
    #[arg(long, value_enum, value_name = "STATUS")]
    pub busy: Option<Busy>,

    /// Break answers off after so many tokens.
    #[arg(long, value_name = "TOKENS")]
    pub cut_after_tokens: Option<usize>,

    /// How an answer that breaks off ends.
    #[arg(long, value_enum, value_name = "HOW", default_value = "close")]
    pub cut: Cut,

    /// Send the head of every answer so much later.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_duration)]
    pub header_delay: Duration,

    /// Read requests and never answer them.
    #[arg(long)]
    pub never_answer: bool,

    /// Write the first keys of JSON answers twice.
    #[arg(long)]
    pub duplicate_keys: bool,

    /// Write answers one byte at a time.
    #[arg(long)]
    pub one_byte_writes: bool,
}

impl From<SimulateArgs> for Settings {
    fn from(args: SimulateArgs) -> Self {
        Self {
            host: args.host,
            port: args.port,
            models: args.models,
            model_path: args.model_path,
            seed: args.seed,
            timings: Timings {
                load: args.timing.load_time,
                first_token: args.timing.time_to_first_token,
                token: args.timing.time_per_token,
                prompt_token: args.timing.time_per_prompt_token,
                image_step: args.timing.image_time_per_step,
            },
            slots: args.slots,
            answer_tokens: args.answer_tokens,
            context_window: args.context_window,
            prefix_cache_blocks: args.prefix_cache_blocks,
            loading_faults: LoadingFaults {
                dies_at: args.fault.die_while_loading,
                hangs: args.fault.hang_while_loading,
                door: args.fault.while_loading,
                lies_about_readiness: args.fault.lie_about_readiness,
                port_never_opens: args.fault.never_open_port,
            },
            answer_faults: AnswerFaults {
                busy: args.fault.busy,
                cut_after_tokens: args.fault.cut_after_tokens,
                cut: args.fault.cut,
                header_delay: args.fault.header_delay,
                never_answers: args.fault.never_answer,
                duplicate_keys: args.fault.duplicate_keys,
                one_byte_writes: args.fault.one_byte_writes,
                garbage_health: args.fault.garbage_health,
            },
            request_faults: args.allow_request_faults,
            request_log: args.log_requests,
            keep_alive: args.keep_alive,
            announces: true,
        }
    }
}

/// Runs an engine until SIGTERM or SIGINT, which end it at once, or until it dies, which is an error.
pub async fn run(args: SimulateArgs) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let engine = Simulator::start(args.into()).await?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        ending = engine.ended() => {
            if let Ending::Died(reason) = ending {
                anyhow::bail!(reason);
            }
        }
    }
    engine.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: SimulateArgs,
    }

    fn parsed(flags: &[&str]) -> Settings {
        Program::try_parse_from([&["simulate"], flags].concat()).unwrap().args.into()
    }

    #[test]
    fn flags_become_settings() {
        let settings = parsed(&[
            "--model=llama",
            "--port=0",
            "--load-time=1m30s",
            "--die-while-loading=30%",
            "--while-loading=closed",
            "--busy=429",
            "--cut=reset",
        ]);
        assert_eq!(settings.models, ["llama"]);
        assert_eq!(settings.timings.load, Duration::from_secs(90));
        assert_eq!(settings.loading_faults.dies_at, Some(DiesAt::Fraction(0.3)));
        assert_eq!(settings.loading_faults.door, DoorWhileLoading::Closed);
        assert_eq!(settings.answer_faults.busy, Some(Busy::TooManyRequests));
        assert_eq!(settings.answer_faults.cut, Cut::Reset);
        assert!(!settings.request_faults && !settings.request_log);
    }

    #[test]
    fn without_flags_nothing_goes_wrong() {
        let settings = parsed(&[]);
        assert_eq!(settings.loading_faults, LoadingFaults::default());
        assert_eq!(settings.answer_faults, AnswerFaults::default());
    }
}
