//! A gateway that is ended under load, by SIGTERM and by SIGKILL, again and again: every request that was sent
//! is accounted for, at the client and at the engine.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use http::StatusCode;
use http_body_util::BodyExt as _;
use rustix::process::Signal;
use serde_json::{Map, Value, json};
use tokio::task::{JoinHandle, LocalSet};

use crate::binaries;
use crate::requests::{connect, get};
use crate::targets::{self, Setting, Target};
use crate::work::Work;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where our binaries are; default beside this one
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// How often the gateway is ended by each signal
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Connections at once, all of them always busy
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// End with one JSON object
    #[arg(long)]
    json: bool,
}

/// What the engine takes for an answer: long enough that some are always being made.
const DELAY: Duration = Duration::from_millis(20);

/// What a client waits after a lost request.
const PAUSE: Duration = Duration::from_millis(100);

const SIGNALS: [(&str, Signal); 2] = [("SIGTERM", Signal::TERM), ("SIGKILL", Signal::KILL)];

/// What became of the requests of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fates {
    /// Answered whole.
    answered: Cell<u64>,
    /// Told to come back later, before any engine saw them.
    refused: Cell<u64>,
    /// Sent, and the connection ended before the answer did.
    lost: Cell<u64>,
    /// Answered otherwise.
    wrong: Cell<u64>,
    /// Seen by the engine.
    seen: Cell<u64>,
}

/// What the clients of a round share.
#[derive(Default)]
struct Crowd {
    fates: Fates,
    /// The gateway is not ready any more, and a balancer gives it no new connection.
    leaving: Cell<bool>,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let ours = binaries::folder(arguments.binaries.as_deref())?;
    let folder = tempfile::tempdir().context("cannot create a folder for the gateway")?;
    let engine = targets::engine(&ours, DELAY)?;
    let setting = Setting { folder: folder.path(), engine: &engine.address, threads: 2 };
    let mut object = Map::new();
    for (name, signal) in SIGNALS {
        let sum = Fates::default();
        for number in 0..arguments.rounds {
            let fates = round(arguments, &ours, &setting, signal, number).await;
            let fates = fates.with_context(|| format!("round {number} with {name}"))?;
            fates
                .check(signal, arguments.connections)
                .with_context(|| format!("{name}: {fates:?}"))?;
            sum.add(&fates);
        }
        sum.print(name, arguments.rounds);
        object.insert(name.to_owned(), sum.json());
    }
    if arguments.json {
        println!("{}", Value::Object(object));
    }
    Ok(())
}

/// Starts a gateway, loads it, ends it in the middle, and counts.
async fn round(
    arguments: &Arguments,
    ours: &Path,
    setting: &Setting<'_>,
    signal: Signal,
    number: u64,
) -> Result<Fates> {
    let mut gateway = targets::gateway_with_drain(&ours.join("flexinfer-gateway"), setting)?;
    gateway.model_upstream().await?;
    let seen = || async { Ok::<u64, anyhow::Error>(get(setting.engine, "/count").await?.parse()?) };
    let before = seen().await?;
    let crowd = Rc::new(Crowd::default());
    let clients = LocalSet::new();
    let busy: Vec<_> = (0..arguments.connections)
        .map(|_| clients.spawn_local(client(gateway.address.clone(), Rc::clone(&crowd))))
        .collect();
    let moment = Duration::from_millis(200 + number * 37 % 300);
    clients.run_until(end(&mut gateway, signal, moment, &crowd, busy)).await?;
    crowd.fates.seen.set(seen().await? - before);
    Ok(crowd.fates.clone())
}

/// Ends the gateway at a `moment` that differs from round to round, and waits for the clients.
async fn end(
    gateway: &mut Target,
    signal: Signal,
    moment: Duration,
    crowd: &Crowd,
    clients: Vec<JoinHandle<Result<()>>>,
) -> Result<()> {
    tokio::time::sleep(moment).await;
    gateway.signal(signal)?;
    let admin = gateway.admin.clone().context("a gateway has an admin port")?;
    while get(&admin, "/readyz").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    crowd.leaving.set(true);
    gateway.ended().await?;
    for client in clients {
        client.await??;
    }
    Ok(())
}

/// Asks on connections that it keeps, until it gets none any more.
async fn client(address: String, crowd: Rc<Crowd>) -> Result<()> {
    let (work, fates) = (Work::chat(), &crowd.fates);
    while !crowd.leaving.get() {
        let Ok(mut sender) = connect(&address).await else { break };
        let lost = fates.lost.get();
        // A connection that is closed between two requests takes none with it.
        while sender.ready().await.is_ok() {
            let fate = match sender.send_request(work.request(&address)?).await {
                Err(error) if error.is_canceled() => break,
                Err(_) => &fates.lost,
                Ok(answer) => match (answer.status(), answer.into_body().collect().await) {
                    (_, Err(_)) => &fates.lost,
                    (StatusCode::OK, Ok(_)) => &fates.answered,
                    (StatusCode::SERVICE_UNAVAILABLE, Ok(_)) => &fates.refused,
                    (_, Ok(_)) => &fates.wrong,
                },
            };
            fate.set(fate.get() + 1);
        }
        if fates.lost.get() > lost {
            // As clients do before they try again.
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

impl Fates {
    /// Whether everything is accounted for.
    fn check(&self, signal: Signal, connections: usize) -> Result<()> {
        let (answered, lost, seen) = (self.answered.get(), self.lost.get(), self.seen.get());
        let at_once = u64::try_from(connections)?;
        ensure!(answered > 0, "there was no load");
        ensure!(self.wrong.get() == 0, "a request was answered with an error");
        ensure!(seen >= answered, "an answer came from nowhere");
        ensure!(seen <= answered + lost, "the engine was asked twice for one request");
        if signal == Signal::TERM {
            ensure!(lost == 0, "a request that was taken was not answered");
        }
        // Whoever has lost one may have sent the next to a socket that the system was just taking down.
        ensure!(lost <= 2 * at_once, "more requests were lost than were on their way");
        Ok(())
    }

    fn all(&self) -> [(&'static str, &Cell<u64>); 5] {
        [
            ("answered", &self.answered),
            ("refused", &self.refused),
            ("lost", &self.lost),
            ("wrong", &self.wrong),
            ("seen_by_engine", &self.seen),
        ]
    }

    fn add(&self, other: &Self) {
        for ((_, sum), (_, count)) in self.all().into_iter().zip(other.all()) {
            sum.set(sum.get() + count.get());
        }
    }

    fn print(&self, name: &str, rounds: u64) {
        let told = self.all().map(|(fate, count)| format!("{} {fate}", count.get()));
        println!("{name}, {rounds} times under load: {}", told.join(", "));
    }

    fn json(&self) -> Value {
        self.all().map(|(fate, count)| (fate.to_owned(), json!(count.get()))).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(answered: u64, lost: u64, seen: u64) -> Fates {
        let fates = Fates::default();
        for (cell, count) in [(&fates.answered, answered), (&fates.lost, lost), (&fates.seen, seen)]
        {
            cell.set(count);
        }
        fates
    }

    #[test]
    fn what_is_not_accounted_for_is_found() {
        let why = |fates: &Fates, signal| fates.check(signal, 2).unwrap_err().to_string();
        fates(9, 0, 9).check(Signal::TERM, 2).unwrap();
        fates(9, 2, 10).check(Signal::KILL, 2).unwrap();
        assert!(why(&fates(9, 1, 9), Signal::TERM).contains("was not answered"));
        assert!(why(&fates(9, 1, 11), Signal::KILL).contains("twice"));
        assert!(why(&fates(9, 0, 8), Signal::KILL).contains("nowhere"));
        assert!(why(&fates(9, 5, 9), Signal::KILL).contains("on their way"));
    }
}
