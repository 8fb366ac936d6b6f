//! The controller killed at each write of a swap, as a machine that loses power does: before the API server hears
//! of the write, and when it has carried it out and nobody was told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::{Duration, sleep};

use super::pair::{NAMES, Pair};
use crate::middleman::{Call, Middleman, Treatment};
use crate::shared::World;

/// What a swap cannot do without, as the table names it.
const ACTS: [&str; 4] =
    ["models/OLD/status", "deployments/OLD", "deployments/NEW", "models/NEW/status"];

/// When the controller dies.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Before,
    After,
}

/// Events are for people; nothing is decided by them.
fn decides(call: &Call) -> bool {
    call.writes() && !call.path.contains("/events")
}

/// A swap's write by the part that its model has in it.
fn named(call: &Call, old: &str, new: &str) -> String {
    let act = call.act();
    let act = act.split(' ').nth(1).unwrap_or_default();
    act.split('/')
        .map(|part| match part {
            part if part == old => "OLD",
            part if part == new => "NEW",
            part => part,
        })
        .collect::<Vec<_>>()
        .join("/")
}

/// Models that take turns, and the writes at which the controller was killed.
struct Table {
    pair: Pair,
    middleman: Middleman,
    resident: usize,
    killed_at: BTreeSet<String>,
}

impl Table {
    async fn new() -> Self {
        let mut pair = Pair::of(World::new().await).await;
        let middleman = Middleman::before(pair.desk.world()).await;
        pair.start_controller(&middleman.kubeconfig());
        pair.ask(NAMES[0]).await;
        pair.settled(NAMES[0], "at first").await;
        Self { pair, middleman, resident: 0, killed_at: BTreeSet::new() }
    }

    /// A swap in which the controller dies at the write of this number. Whether there was one.
    async fn kill_at(&mut self, number: usize, moment: Moment) -> bool {
        let (old, new) = (NAMES[self.resident], NAMES[1 - self.resident]);
        let reached = Arc::new(Notify::new());
        let act: Arc<Mutex<Option<String>>> = Arc::default();
        let (told, noted, mut seen) = (Arc::clone(&reached), Arc::clone(&act), 0);
        self.middleman.rule(move |call| {
            if !decides(call) {
                return Treatment::Pass;
            }
            seen += 1;
            match (seen.cmp(&(number + 1)), moment) {
                (std::cmp::Ordering::Less, _) => return Treatment::Pass,
                (std::cmp::Ordering::Equal, _) => {
                    *noted.lock().unwrap() = Some(named(call, old, new));
                }
                (std::cmp::Ordering::Greater, _) => {}
            }
            match moment {
                Moment::Before => Treatment::Lost(Arc::clone(&told)),
                Moment::After => Treatment::Unanswered(Arc::clone(&told)),
            }
        });
        // The old one is busy, so that it has something to finish.
        let busy = self.pair.gateway.asking(old);
        self.pair.gateway.sees(old, |shown| shown["inFlight"] == 1).await;
        let waiting = self.pair.gateway.asking(new);
        let settled = async {
            while !waiting.is_finished() {
                sleep(Duration::from_millis(20)).await;
            }
            self.pair.settled(new, &format!("without a kill at write {number}")).await;
        };
        let killed = tokio::select! {
            () = reached.notified() => true,
            () = settled => false,
        };
        if killed {
            self.pair.desk.kill_controller().await;
            self.middleman.rule(|_| Treatment::Pass);
            self.pair.start_controller(&self.middleman.kubeconfig());
        }
        let act = act.lock().unwrap().take().unwrap_or_default();
        let when = format!("killed {moment:?} write {number}, {act}");
        for (model, asked) in [(old, busy), (new, waiting)] {
            let answer = asked.await.unwrap();
            let log = self.pair.desk.log();
            assert_eq!(answer.status(), 200, "{when}: {model}: {}\n{log}", answer.text());
        }
        self.pair.settled(new, &when).await;
        self.resident = 1 - self.resident;
        self.killed_at.extend(killed.then_some(act));
        killed
    }
}

async fn killed_at_each(moment: Moment) {
    let mut table = Table::new().await;
    let mut number = 0;
    while table.kill_at(number, moment).await {
        number += 1;
    }
    println!("killed {moment:?} each of {number} writes: {:?}", table.killed_at);
    for act in ACTS {
        assert!(table.killed_at.contains(act), "never killed at {act}: {:?}", table.killed_at);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_any_write_of_a_swap_it_is_finished_by_the_next_and_no_request_is_lost() {
    killed_at_each(Moment::Before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_any_write_of_a_swap_it_is_finished_by_the_next_and_no_request_is_lost() {
    killed_at_each(Moment::After).await;
}
