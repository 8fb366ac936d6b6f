//! The side-by-side comparison. Rounds of all targets in turn, so that whatever else the machine does meets
//! all of them; medians over the rounds; ratios, since absolute times belong to one machine.

mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::targets::{Name, Programs, Target};
use crate::work::{ENGINE_MODEL, MODEL};
use crate::{cpu, crowd, requests, streams};
use report::Report;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The nginx to compare with
    #[arg(long)]
    nginx: PathBuf,
    /// Where our binaries are; default beside this one
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Threads of each proxy
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Streams at once
    #[arg(long, default_value_t = 500)]
    streams: usize,
    /// Requests that wait for one sleeping model
    #[arg(long, default_value_t = 1000)]
    waiters: usize,
    /// Fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// End with one JSON object
    #[arg(long)]
    json: bool,
}

/// How much is measured.
struct Pace {
    rounds: usize,
    warm_up: Duration,
    round: Duration,
    stream_rounds: usize,
    stream_round: Duration,
}

impl Pace {
    fn of(quick: bool) -> Self {
        let seconds = Duration::from_secs;
        if quick {
            let warm_up = Duration::from_millis(200);
            return Self {
                rounds: 3,
                warm_up,
                round: seconds(1),
                stream_rounds: 1,
                stream_round: seconds(4),
            };
        }
        let warm_up = Duration::from_millis(500);
        Self { rounds: 7, warm_up, round: seconds(4), stream_rounds: 3, stream_round: seconds(10) }
    }
}

/// One round of whole answers.
#[derive(Clone, Copy)]
struct Round {
    per_second: f64,
    cpu_microseconds: f64,
    median_microseconds: f64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let ours = match &arguments.binaries {
        Some(folder) => folder.clone(),
        None => std::env::current_exe()?.parent().context("this binary has no folder")?.into(),
    };
    let programs = Programs { nginx: arguments.nginx.clone(), ours, threads: arguments.threads };
    let folder = std::env::temp_dir().join(format!("flexinfer-bench-{}", std::process::id()));
    let outcome = measure(arguments, &programs, &folder).await;
    drop(std::fs::remove_dir_all(&folder));
    let report = outcome?;
    report.print();
    if arguments.json {
        println!("{}", report.json()?);
    }
    Ok(())
}

async fn measure(
    arguments: &Arguments,
    programs: &Programs,
    folder: &std::path::Path,
) -> Result<Report> {
    let pace = Pace::of(arguments.quick);
    let mut targets = programs.start(folder)?;
    for target in &mut targets {
        let wanted = if target.name == Name::Gateway { ENGINE_MODEL } else { MODEL };
        let model = target.model_upstream().await?;
        if model != wanted {
            bail!("{} sent the model on as {model:?}, not {wanted:?}", target.name.shown());
        }
    }
    let mut report =
        Report { threads: arguments.threads, streams: arguments.streams, ..Report::default() };
    for connections in [1, 32] {
        let rounds = whole_answers(&targets, connections, &pace).await?;
        report.requests.insert(connections, rounds);
    }
    report.events = event_streams(&targets, arguments.streams, &pace).await?;
    drop(targets);
    eprintln!("{} requests for one sleeping model", arguments.waiters);
    let gateway = programs.ours.join("flexinfer-gateway");
    report.crowd = Some(crowd::gather(&gateway, &folder.join("crowd"), arguments.waiters).await?);
    Ok(report)
}

async fn whole_answers(
    targets: &[Target],
    connections: usize,
    pace: &Pace,
) -> Result<BTreeMap<Name, Vec<Round>>> {
    let mut rounds: BTreeMap<Name, Vec<Round>> = BTreeMap::new();
    for number in 1..=pace.rounds {
        for target in targets {
            eprintln!("{connections} connection(s), round {number}: {}", target.name.shown());
            requests::closed_loop(&target.address, connections, pace.warm_up).await?;
            let before = cpu::used(target.pid())?;
            let seen = requests::closed_loop(&target.address, connections, pace.round).await?;
            let used = cpu::used(target.pid())?.saturating_sub(before);
            rounds.entry(target.name).or_default().push(Round {
                per_second: number_of(seen.requests) / seen.took.as_secs_f64(),
                cpu_microseconds: used.as_secs_f64() * 1e6 / number_of(seen.requests),
                median_microseconds: number_of(seen.latencies.value_at_quantile(0.5)) / 1e3,
            });
        }
    }
    Ok(rounds)
}

/// CPU microseconds per event, one figure a round.
async fn event_streams(
    targets: &[Target],
    count: usize,
    pace: &Pace,
) -> Result<BTreeMap<Name, Vec<f64>>> {
    let mut rounds: BTreeMap<Name, Vec<f64>> = BTreeMap::new();
    for number in 1..=pace.stream_rounds {
        for target in targets {
            eprintln!("{count} streams, round {number}: {}", target.name.shown());
            let reading = || cpu::used(target.pid());
            let address = &target.stream_address;
            let (before, after, events) =
                streams::flow(address, count, pace.stream_round, reading).await?;
            let used = after.saturating_sub(before).as_secs_f64() * 1e6;
            rounds.entry(target.name).or_default().push(used / number_of(events));
        }
    }
    Ok(rounds)
}

#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds stay far below 2^52")]
fn number_of(count: u64) -> f64 {
    count as f64
}
