//! One look: ask the hardware, ask what it means, and write what differs.

use std::sync::Arc;

use anyhow::Context as _;
use flexinfer_core::hardware::knowledge::{Health, Knowledge, Look};
use flexinfer_core::hardware::marks::{LabelPrefix, Node, enabled, patch};
use flexinfer_core::hardware::{Survey, allocatable};
use flexinfer_crds::keys;
use jiff::Timestamp;

use super::arguments::Arguments;
use super::cluster::{NodeStore, Pods, StoreError};
use super::engines;
use super::metrics::Metrics;
use super::probing::{Probed, Prober};

/// Looks, and remembers what has to be remembered between two looks.
pub(super) struct Looker {
    store: Arc<dyn NodeStore>,
    prober: Prober,
    metrics: Arc<Metrics>,
    client: reqwest::Client,
    prefix: LabelPrefix,
    knowledge: Knowledge,
    health: Health,
}

impl Looker {
    pub(super) fn new(
        arguments: &Arguments,
        store: Arc<dyn NodeStore>,
        prober: Prober,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<Self> {
        let client =
            reqwest::Client::builder().no_proxy().build().context("no HTTP client can be made")?;
        let prefix = arguments.label_prefix.clone();
        Ok(Self {
            store,
            prober,
            metrics,
            client,
            prefix,
            knowledge: Knowledge::default(),
            health: Health::Good,
        })
    }

    /// Looks once. Returns whether the agent had better be restarted.
    pub(super) async fn look(&mut self) -> anyhow::Result<bool> {
        // What became ready after this moment may be missing from the probe.
        let now = Timestamp::now();
        let probed = self.prober.probe().await;
        let node = self.store.read().await?;
        let counted = by_allocatable(&probed, &node);
        let by_count = counted.is_some();
        let mut found = counted.map_or(probed.found, Ok);
        if let Ok(survey) = &mut found {
            survey.findings.extend(probed.out_of_reach);
        }
        let pods = self.store.pods().await.unwrap_or_else(|error| {
            tracing::warn!(error = %error, "the KV caches' use stays unknown; may the agent list pods?");
            Pods::default()
        });
        let kv_cache_usage = engines::fullest(&self.client, &pods.engines).await;
        let look = Look {
            found: &found,
            node: &node,
            bus_is_empty: probed.bus_is_empty,
            avx512: avx512(),
            kv_cache_usage,
            newest_ready: pods.newest_ready,
            now,
        };
        let mut judgement = self.knowledge.judge(&look);
        if by_count {
            // A count proves nothing about devices.
            judgement.marks.annotations.remove(keys::GPU_PROVEN);
        }
        judgement.marks.labels.extend(enabled(&node));
        judgement.marks.labels = self.prefix.copied(judgement.marks.labels);
        self.metrics.looked(found.as_ref().ok());
        self.tell(&judgement.health);
        if let Some(patch) = patch(&node, &judgement.marks) {
            match self.store.patch(&patch).await {
                Ok(()) => {}
                // Nothing is lost: the next look compares with the node as it is then.
                Err(StoreError::Conflict) => tracing::debug!("the node was changed meanwhile"),
                Err(error) => return Err(error).context("the node stays as it was"),
            }
        }
        Ok(judgement.give_up)
    }

    /// Says how the GPUs are, when that changed.
    fn tell(&mut self, health: &Health) {
        if *health == self.health {
            return;
        }
        match health {
            Health::Good => tracing::info!("all GPUs answer"),
            Health::Attention(why) | Health::Degraded(why) | Health::Unknown(why) => {
                tracing::warn!(why, "the GPUs are not as they should be");
            }
        }
        self.health = health.clone();
    }
}

/// What pods may ask of the node stands in where nothing else was found or ever known: a device plug-in can
/// count one GPU several times.
fn by_allocatable(probed: &Probed, node: &Node) -> Option<Survey> {
    let nothing = probed.found.as_ref().is_ok_and(|survey| *survey == Survey::default());
    let counted = allocatable::read(&node.allocatable);
    let known = node.annotations.contains_key(keys::GPU_PROVEN);
    (nothing && !known && !counted.gpus.is_empty()).then_some(counted)
}

/// Whether the processor has AVX-512.
fn avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
