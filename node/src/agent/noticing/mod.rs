//! Watching for the machine being taken away, and marking the node while it is.

mod metadata;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::hardware::marks::{Node, patch};
use flexinfer_core::hardware::spot::signs::{self, Sign};
use flexinfer_core::hardware::spot::{
    Cloud, Notice, Provider, Reading, by_provider, harvester, mark,
};
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::arguments::{Choice, Noticing};
use super::cluster::{NodeStore, StoreError};
use metadata::{Detector, Server};

/// The event on pods of a node that goes away.
const REASON: &str = "SpotTermination";

/// While nobody knows whose machine this is, that is asked at one tick of so many: the node may get its provider
/// later, and a metadata server may not be in reach at once.
const SEARCH: u64 = 12;

/// Watches until it is dropped.
pub(super) struct Watch {
    choice: Choice,
    taints: Vec<Sign>,
    annotations: Vec<Sign>,
    server: Server,
    interval: Duration,
    store: Arc<dyn NodeStore>,
    told: Told,
}

/// The notice that pods have been told of.
#[derive(Default)]
struct Told {
    reason: Option<String>,
    /// Their ids.
    pods: BTreeSet<String>,
    /// None is left.
    all: bool,
}

impl Watch {
    pub(super) fn new(arguments: &Noticing, store: Arc<dyn NodeStore>) -> anyhow::Result<Self> {
        Ok(Self {
            choice: arguments.spot_cloud,
            taints: arguments.taints.clone(),
            annotations: arguments.annotations.clone(),
            server: Server::new(&arguments.metadata_url)?,
            interval: arguments.spot_interval.into(),
            store,
            told: Told::default(),
        })
    }

    /// Asks the cloud at every tick, and looks at the node at every second one, whenever the cloud says something
    /// else than before, and after a look that came to nothing.
    pub(super) async fn run(mut self) {
        let mut detector = None;
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut before, mut failed) = (Reading::Quiet, false);
        for tick in 0_u64.. {
            ticks.tick().await;
            if detector.is_none() && tick % SEARCH == 0 {
                let cloud = self.cloud().await;
                if tick == 0 || cloud.is_some() {
                    let watched = cloud.map_or("nobody".to_owned(), |cloud| cloud.to_string());
                    tracing::info!(
                        cloud = watched,
                        "watching taints, annotations and the notices of a cloud"
                    );
                }
                detector = cloud.map(Detector::new);
            }
            let told = match &mut detector {
                Some(detector) => detector.look(&self.server, Timestamp::now()).await,
                None => Reading::Quiet,
            };
            if let (Reading::Unclear(why), false) = (&told, matches!(before, Reading::Unclear(_))) {
                tracing::warn!(why, "it is not clear whether this machine will be taken away");
            }
            if tick % 2 == 0 || failed || told != before {
                let marked = self.mark(told.clone()).await;
                failed = marked.is_err();
                if let Err(error) = marked {
                    tracing::warn!(error = %error, "the node could not be marked; trying again");
                }
            }
            before = told;
        }
    }

    /// The cloud whose metadata server is asked, if it is known or says so itself.
    async fn cloud(&self) -> Option<Cloud> {
        match self.choice {
            Choice::None => return None,
            Choice::Cloud(cloud) => return Some(cloud),
            Choice::Auto => {}
        }
        let node = self.store.read().await.unwrap_or_default();
        match by_provider(node.provider.as_deref().unwrap_or_default()) {
            Provider::Cloud(cloud) => Some(cloud),
            Provider::Silent => None,
            Provider::Unknown => self.server.identify().await,
        }
    }

    /// Marks the node after what the cloud `told` and what is on the node itself.
    async fn mark(&mut self, told: Reading) -> Result<(), StoreError> {
        let node = self.store.read().await?;
        let reading = self.strongest(told, &node);
        if let Some(patch) = patch(&node, &mark(&reading, &node)) {
            self.store.patch(&patch).await?;
        }
        match &reading {
            Reading::Noticed(notice) => self.tell(notice).await,
            Reading::Quiet => {
                self.told = Told::default();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A notice from anywhere counts; quiet is only what is quiet everywhere.
    fn strongest(&self, told: Reading, node: &Node) -> Reading {
        if matches!(told, Reading::Noticed(_)) {
            return told;
        }
        let now = Timestamp::now();
        let seen = [
            harvester::notice(node, now),
            signs::notice(node, &self.taints, &self.annotations, now),
        ];
        seen.into_iter().find(|reading| matches!(reading, Reading::Noticed(_))).unwrap_or(told)
    }

    /// Tells the engines' pods, each once for each reason.
    async fn tell(&mut self, notice: &Notice) -> Result<(), StoreError> {
        if self.told.reason.as_ref() != Some(&notice.reason) {
            self.told = Told { reason: Some(notice.reason.clone()), ..Told::default() };
            tracing::warn!(reason = notice.reason, at = %notice.at, "this machine will be taken away");
        }
        if !self.told.all {
            let message = format!("{}, at {:.0}", notice.reason, notice.at);
            self.store.warn(REASON, &message, &mut self.told.pods).await?;
            self.told.all = true;
        }
        Ok(())
    }
}
