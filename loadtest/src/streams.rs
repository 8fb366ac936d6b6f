//! Many answers by events at once, read as they come.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use http_body_util::BodyExt as _;
use tokio::task::LocalSet;

use crate::requests::connect;
use crate::work::Work;

/// How long all streams may take to have sent their first event.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the streams stand, counted by all of them.
#[derive(Default)]
struct Tally {
    flowing: Cell<usize>,
    events: Cell<u64>,
    broken: Cell<usize>,
}

/// Opens `count` streams; once events come on all of them, `measured` is called, events are counted for
/// `duration`, and `measured` is called again. Gives both readings and the events between them.
pub(crate) async fn flow<Reading>(
    address: &str,
    count: usize,
    duration: Duration,
    measured: impl Fn() -> Result<Reading>,
) -> Result<(Reading, Reading, u64)> {
    let tally = Rc::new(Tally::default());
    let streams = LocalSet::new();
    for _ in 0..count {
        let (address, tally) = (address.to_owned(), Rc::clone(&tally));
        streams.spawn_local(async move {
            if read(&address, &tally).await.is_err() {
                tally.broken.set(tally.broken.get() + 1);
            }
        });
    }
    let watching = async {
        let begun = Instant::now();
        while tally.flowing.get() < count {
            if begun.elapsed() > PATIENCE || tally.broken.get() > 0 {
                bail!(
                    "{address}: {} of {count} streams flow, {} broke",
                    tally.flowing.get(),
                    tally.broken.get()
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (before, events) = (measured()?, tally.events.get());
        tokio::time::sleep(duration).await;
        let after = measured()?;
        if tally.broken.get() > 0 {
            bail!("{address}: {} of {count} streams broke while they flowed", tally.broken.get());
        }
        Ok((before, after, tally.events.get() - events))
    };
    streams.run_until(watching).await
}

/// Reads one stream for as long as it lasts; dropping the future closes it.
async fn read(address: &str, tally: &Tally) -> Result<()> {
    let mut sender = connect(address).await?;
    let answer = sender.send_request(Work::stream().request(address)?).await?;
    if !answer.status().is_success() {
        bail!("{address} answered {}", answer.status());
    }
    let mut body = answer.into_body();
    let mut first = true;
    while let Some(frame) = body.frame().await {
        let data = frame?.into_data().unwrap_or_default();
        // An event ends with an empty line, and no line of these events begins with a line break itself.
        let events = data.windows(2).filter(|pair| pair == b"\n\n").count();
        tally.events.set(tally.events.get() + u64::try_from(events)?);
        if std::mem::take(&mut first) {
            tally.flowing.set(tally.flowing.get() + 1);
        }
    }
    bail!("{address} ended the stream")
}
