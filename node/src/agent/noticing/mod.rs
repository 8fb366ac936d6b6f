//! Watching for the machine being taken away, and marking the node while it is.

mod metadata;

use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::hardware::marks::{Node, patch};
use flexinfer_core::hardware::spot::signs::{self, Sign};
use flexinfer_core::hardware::spot::{Notice, Reading, by_provider, harvester, mark};
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::arguments::{Choice, Noticing};
use super::cluster::{NodeStore, StoreError};
use metadata::{Detector, Server};

/// The event on pods of a node that goes away.
const REASON: &str = "SpotTermination";

/// Watches until it is dropped.
pub(super) struct Watch {
    choice: Choice,
    taints: Vec<Sign>,
    annotations: Vec<Sign>,
    server: Server,
    interval: Duration,
    store: Arc<dyn NodeStore>,
    /// The notice that the pods have been told of.
    told: Option<String>,
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
            told: None,
        })
    }

    /// Asks the cloud at every tick, and looks at the node at every second one and whenever the cloud says
    /// something else than before.
    pub(super) async fn run(mut self) {
        let mut detector = self.detector().await;
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = Reading::Quiet;
        for tick in 0_u64.. {
            ticks.tick().await;
            let told = match &mut detector {
                Some(detector) => detector.look(&self.server, Timestamp::now()).await,
                None => Reading::Quiet,
            };
            if let (Reading::Unclear(why), false) = (&told, matches!(before, Reading::Unclear(_))) {
                tracing::warn!(why, "it is not clear whether this machine will be taken away");
            }
            let due = tick % 2 == 0 || told != before;
            before = told.clone();
            if due && let Err(error) = self.mark(told).await {
                tracing::warn!(error = %error, "the node could not be marked; trying again");
            }
        }
    }

    /// The cloud whose metadata server is asked, if any.
    async fn detector(&self) -> Option<Detector> {
        let cloud = match self.choice {
            Choice::None => None,
            Choice::Cloud(cloud) => Some(cloud),
            Choice::Auto => {
                let node = self.store.read().await.unwrap_or_default();
                match node.provider.as_deref().filter(|provider| !provider.is_empty()) {
                    Some(provider) => by_provider(provider),
                    None => self.server.identify().await,
                }
            }
        };
        let watched = cloud.map_or("nobody".to_owned(), |cloud| cloud.to_string());
        tracing::info!(cloud = watched, "watching taints, annotations and the notices of a cloud");
        cloud.map(Detector::new)
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
                self.told = None;
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

    /// Tells the engines' pods, once for each reason.
    async fn tell(&mut self, notice: &Notice) -> Result<(), StoreError> {
        if self.told.as_ref() == Some(&notice.reason) {
            return Ok(());
        }
        tracing::warn!(reason = notice.reason, at = %notice.at, "this machine will be taken away");
        self.store.warn(REASON, &format!("{}, at {:.0}", notice.reason, notice.at)).await?;
        self.told = Some(notice.reason.clone());
        Ok(())
    }
}
