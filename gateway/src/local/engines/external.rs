//! An engine that somebody else runs: asked whether it is there, and followed while it is.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use flexinfer_core::activation::{Failure, Reason, Report};
use flexinfer_core::backends::{Backend, Gpu, Launch, ModelPlace, Placement, Platform};
use flexinfer_core::effective::{Spoken, key_of_engine};
use tokio::time::{Instant, sleep};

use super::failures;
use super::life::{End, Life};
use crate::ask::{self, Answer};
use crate::way::Way;

/// How long it may be away before requests that wait for it are told: somebody may be starting it.
const PATIENCE_WITH_ABSENCE: Duration = Duration::from_secs(3);
/// How long one probe may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked while it serves.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);
/// How often it is asked while it does not.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Reports it ready once it answers, and each time that it is back; returns once it does not any more.
pub(super) async fn follow(life: &Life, backend: Backend) -> Result<Infallible, End> {
    let placement = Placement {
        platform: Platform::Process,
        host: String::new(),
        port: 0,
        model: ModelPlace::Nothing,
        gpu: Gpu::none(),
        adapters: 0,
        adapter_rank: None,
        simulator_program: None,
        data_dir: String::new(),
        store: None,
    };
    let launch =
        backend.launch(life.model(), &placement).map_err(|error| failures::not_launched(&error))?;
    let (secret, spoken) = (key_of_engine(life.model()), Spoken::to(life.model()));
    let secrets = &life.shared.settings.secrets;
    let way = |address| Way::new(address, &spoken, life.secret(secret.as_deref()), secrets);
    let address = appear(&resolve(&launch).await?, &launch, &way).await?;
    loop {
        // Said again when it is back: it may be another process, which has nothing of what was loaded before.
        life.report(Report::Ready { instance: life.instance, address });
        silence(&way(address), &launch).await;
        appear(&[address], &launch, &way).await?;
    }
}

/// Waits until nothing answers. Garbage and "not yet" are answers too; requests will show what they are worth.
async fn silence(way: &Way<'_>, launch: &Launch) {
    loop {
        sleep(BETWEEN_LOOKS).await;
        if ask::probe(way, &launch.probe, PATIENCE).await == Answer::Silence {
            return;
        }
    }
}

/// Every address of its host: `localhost` is two, and engines listen on one of them.
async fn resolve(launch: &Launch) -> Result<Vec<SocketAddr>, Failure> {
    let unknown = |why: String| {
        let message = format!("spec.config.url: the host {} is unknown: {why}", launch.host);
        Failure::new(Reason::InvalidConfig, message)
    };
    let found = tokio::net::lookup_host((launch.host.as_str(), launch.port))
        .await
        .map_err(|error| unknown(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(unknown("it has no address".to_owned())) } else { Ok(found) }
}

/// Waits until it answers at one of `addresses`, and tells which.
async fn appear<'a>(
    addresses: &[SocketAddr],
    launch: &Launch,
    way: &(impl Fn(SocketAddr) -> Way<'a> + Sync),
) -> Result<SocketAddr, Failure> {
    let began = Instant::now();
    loop {
        let mut answer = Answer::Silence;
        for address in addresses {
            match ask::probe(&way(*address), &launch.probe, PATIENCE).await {
                Answer::Ready => return Ok(*address),
                Answer::Silence => {}
                other => answer = other,
            }
        }
        let patience = match answer {
            // It is there, and loads.
            Answer::NotYet => launch.startup_limit,
            Answer::Ready | Answer::Silence | Answer::Garbage(_) => PATIENCE_WITH_ABSENCE,
        };
        if began.elapsed() >= patience {
            return Err(absent(launch, answer));
        }
        sleep(BETWEEN_TRIES).await;
    }
}

fn absent(launch: &Launch, answer: Answer) -> Failure {
    let place = format!("{}:{}", launch.host, launch.port);
    match answer {
        Answer::Garbage(what) => {
            Failure::new(Reason::UnhealthyAnswer, format!("spec.config.url: {place}: {what}"))
        }
        Answer::NotYet => {
            let limit = launch.startup_limit;
            let message = format!("the engine at {place} was not ready within {limit:?}");
            Failure::new(Reason::LoadTimeout, message)
        }
        Answer::Ready | Answer::Silence => {
            let message =
                format!("no engine answers at {place}; start it, or correct spec.config.url");
            Failure::new(Reason::Unreachable, message)
        }
    }
}
