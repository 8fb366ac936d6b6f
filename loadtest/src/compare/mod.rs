//! The side-by-side comparison. Rounds of all targets in turn, so that whatever else the machine does meets
//! all of them; all of them started anew a few times, since the same program is cheap in one process and dear in
//! the next; medians over all rounds; ratios, since absolute times belong to one machine.

mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::probes::{self, Probed};
use crate::targets::{self, Name, Others, Setting, Target};
use crate::{binaries, cpu, crowd, requests, streams};
use report::Report;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    others: Others,
    /// Where our binaries are; default beside this one
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Also the gateway with callers' keys and every kind of limit
    #[arg(long)]
    everything: bool,
    /// Threads of each proxy
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Another build of the gateway, beside that of the folder
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// How many connections ask for whole answers, one number after another
    #[arg(long, value_delimiter = ',', default_value = "1,32")]
    connections: Vec<usize>,
    /// How often everything is started anew, in place of the usual number
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    starts: Option<u16>,
    /// Rounds of whole answers after each start, in place of the usual number
    #[arg(long)]
    rounds: Option<usize>,
    /// Streams at once; 0 for none
    #[arg(long, default_value_t = 500)]
    streams: usize,
    /// Further figures for the JSON object, as an object
    #[arg(long, value_name = "OBJECT")]
    with: Option<String>,
    /// Requests that wait for one sleeping model; 0 for none
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
    starts: u16,
    /// Rounds of whole answers after each start.
    rounds: usize,
    warm_up: Duration,
    round: Duration,
    /// The one round of streams after each start.
    stream_round: Duration,
}

impl Pace {
    fn of(quick: bool) -> Self {
        let seconds = Duration::from_secs;
        if quick {
            let warm_up = Duration::from_millis(200);
            return Self {
                starts: 1,
                rounds: 3,
                warm_up,
                round: seconds(1),
                stream_round: seconds(4),
            };
        }
        let warm_up = Duration::from_millis(500);
        Self { starts: 3, rounds: 3, warm_up, round: seconds(4), stream_round: seconds(10) }
    }
}

/// One round of whole answers.
#[derive(Clone, Copy)]
struct Round {
    per_second: f64,
    cpu_microseconds: f64,
    median_microseconds: f64,
    /// How many processors everything but the comparison itself kept busy meanwhile.
    others: f64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let ours = binaries::folder(arguments.binaries.as_deref())?;
    let folder = std::env::temp_dir().join(format!("flexinfer-bench-{}", std::process::id()));
    let outcome = measure(arguments, &ours, &folder).await;
    drop(std::fs::remove_dir_all(&folder));
    let report = outcome?;
    report.print();
    if arguments.json {
        let with = arguments.with.as_deref().unwrap_or("{}");
        println!("{}", report.json(serde_json::from_str(with).context("--with is no object")?)?);
    }
    Ok(())
}

async fn measure(arguments: &Arguments, ours: &Path, folder: &Path) -> Result<Report> {
    let mut pace = Pace::of(arguments.quick);
    pace.starts = arguments.starts.unwrap_or(pace.starts);
    pace.rounds = arguments.rounds.unwrap_or(pace.rounds);
    let mut report =
        Report { threads: arguments.threads, streams: arguments.streams, ..Report::default() };
    for start in 1..=pace.starts {
        eprintln!("start {start} of {}", pace.starts);
        let targets = started(arguments, ours, &folder.join(start.to_string())).await?;
        for connections in arguments.connections.iter().copied() {
            let rounds = report.requests.entry(connections).or_default();
            whole_answers(&targets, connections, &pace, rounds).await?;
        }
        if arguments.streams > 0 {
            event_streams(&targets, &pace, &mut report).await?;
        }
    }
    if arguments.waiters == 0 {
        return Ok(report);
    }
    eprintln!("{} requests for one sleeping model", arguments.waiters);
    let gateway = ours.join("flexinfer-gateway");
    report.crowd = Some(crowd::gather(&gateway, &folder.join("crowd"), arguments.waiters).await?);
    Ok(report)
}

/// All that is compared, each with files of its own below `folder`, and seen to reach the upstream.
async fn started(arguments: &Arguments, ours: &Path, folder: &Path) -> Result<Vec<Target>> {
    std::fs::create_dir_all(folder).context("cannot create a folder for this start")?;
    let engine = targets::engine(ours, Duration::ZERO)?;
    let setting = Setting { folder, engine: &engine.address.clone(), threads: arguments.threads };
    let mut targets = vec![engine];
    targets.extend(targets::proxies(&arguments.others, ours, arguments.everything, &setting)?);
    if let Some(program) = &arguments.beside {
        targets.extend(targets::beside(program, arguments.everything, &setting)?);
    }
    for target in &mut targets {
        let (model, wanted) = (target.model_upstream().await?, target.name.model_upstream());
        if model != wanted {
            bail!("{} sent the model on as {model:?}, not {wanted:?}", target.name.shown());
        }
    }
    Ok(targets)
}

async fn whole_answers(
    targets: &[Target],
    connections: usize,
    pace: &Pace,
    rounds: &mut BTreeMap<Name, Vec<Round>>,
) -> Result<()> {
    for number in 1..=pace.rounds {
        for target in targets {
            eprintln!("{connections} connection(s), round {number}: {}", target.name.shown());
            requests::closed_loop(&target.address, connections, pace.warm_up).await?;
            let (before, others) = (cpu::used(target.pid())?, by_others()?);
            let seen = requests::closed_loop(&target.address, connections, pace.round).await?;
            let used = cpu::used(target.pid())?.saturating_sub(before);
            let others = by_others()?.saturating_sub(others);
            rounds.entry(target.name).or_default().push(Round {
                per_second: number_of(seen.requests) / seen.took.as_secs_f64(),
                cpu_microseconds: used.as_secs_f64() * 1e6 / number_of(seen.requests),
                median_microseconds: number_of(seen.latencies.value_at_quantile(0.5)) / 1e3,
                others: others.as_secs_f64() / seen.took.as_secs_f64(),
            });
        }
    }
    Ok(())
}

/// The CPU time used by what is not part of the comparison.
fn by_others() -> Result<Duration> {
    Ok(cpu::used_by_all()?.saturating_sub(cpu::used(std::process::id())?))
}

/// One round of streams, during which the gateway is asked whether it is ready.
async fn event_streams(targets: &[Target], pace: &Pace, report: &mut Report) -> Result<()> {
    let count = report.streams;
    for target in targets {
        eprintln!("{count} streams: {}", target.name.shown());
        let reading = || cpu::used(target.pid());
        let flow = streams::flow(&target.stream_address, count, pace.stream_round, reading);
        let ((before, after, events), probed) = match &target.admin {
            Some(admin) => probes::during(flow, admin).await?,
            None => (flow.await?, Probed::default()),
        };
        let used = after.saturating_sub(before).as_secs_f64() * 1e6;
        report.events.entry(target.name).or_default().push(used / number_of(events));
        report.probed.add(probed);
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds stay far below 2^52")]
fn number_of(count: u64) -> f64 {
    count as f64
}
