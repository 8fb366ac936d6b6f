//! Asks endpoints whether they serve, from the moment they have an address: lists of endpoints follow
//! their pods by seconds, and call ready what has not read its weights yet (ROUTE-12).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use flexinfer_core::backends::Probe;
use flexinfer_core::effective::Spoken;
use flexinfer_core::ids::{EndpointId, ModelId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::adapters::Asked;
use super::pools::Pools;
use crate::ask::{self, Answer, Way};
use crate::secrets::Secrets;

/// What an endpoint has to answer before it gets requests.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) probe: Probe,
    /// What is asked of it once it answers that.
    pub(super) adapters: Option<Asked>,
}

/// Runs one task for each endpoint in question.
pub(super) struct Prober {
    pools: Weak<Pools>,
    runtime: Handle,
    secrets: Arc<Secrets>,
    running: Mutex<HashMap<(ModelId, EndpointId), AbortHandle>>,
}

impl Prober {
    /// Tells `pools` who answers, from tasks on `runtime`.
    pub(super) fn new(pools: &Arc<Pools>, secrets: Arc<Secrets>, runtime: Handle) -> Arc<Self> {
        let pools = Arc::downgrade(pools);
        Arc::new(Self { pools, runtime, secrets, running: Mutex::default() })
    }

    /// Asks the endpoint until it answers or is in question no more. A second call for the same endpoint
    /// takes the place of the first.
    pub(super) fn begin(
        self: &Arc<Self>,
        model: ModelId,
        endpoint: EndpointId,
        address: SocketAddr,
        question: Question,
    ) {
        let key = (model, endpoint);
        let task = Arc::clone(self).ask(key.clone(), address, question);
        let task = self.runtime.spawn(task).abort_handle();
        let mut running = self.running.lock();
        running.retain(|_, task| !task.is_finished());
        if let Some(before) = running.insert(key, task) {
            before.abort();
        }
    }

    async fn ask(
        self: Arc<Self>,
        key: (ModelId, EndpointId),
        address: SocketAddr,
        question: Question,
    ) {
        let (model, endpoint) = key;
        let began = Instant::now();
        loop {
            let asked = || Some(self.pools.upgrade()?.in_question(&model, &endpoint, address));
            if asked() != Some(true) {
                return;
            }
            let patience = patience(began.elapsed());
            let answer = self.probe(&model, address, &question.probe, patience).await;
            if answer == Answer::Ready {
                if let Some(adapters) = &question.adapters {
                    adapters.ask(&model, address).await;
                }
                if let Some(pools) = self.pools.upgrade() {
                    pools.act(&model, |pool, now| pool.answered(now, &endpoint, address));
                }
                return;
            }
            tokio::time::sleep(between(began.elapsed())).await;
        }
    }
}

impl Prober {
    /// Asks one engine of `model`, with the key that it wants to know its clients by.
    async fn probe(
        &self,
        model: &ModelId,
        address: SocketAddr,
        probe: &Probe,
        patience: Duration,
    ) -> Answer {
        let served = self.pools.upgrade().and_then(|pools| pools.served(model));
        let effective = served.as_ref().map(|served| &served.effective);
        let secret = effective.and_then(|effective| effective.api_key_secret.as_deref());
        let key = secret.and_then(|name| self.secrets.bearer(name));
        let plain = Spoken::default();
        let spoken = effective.map_or(&plain, |effective| &effective.spoken);
        let way = Way { address, spoken, trust: self.secrets.trust(), key };
        ask::probe(&way, probe, patience).await
    }
}

/// The time between two questions: 1 % of those so far, so that a short load is noticed at once and a
/// long one is not kept from its work.
fn between(elapsed: Duration) -> Duration {
    (elapsed / 100).clamp(Duration::from_millis(10), Duration::from_secs(1))
}

/// How long one question may take: an engine that reads its weights may answer slowly.
fn patience(elapsed: Duration) -> Duration {
    (elapsed / 10).clamp(Duration::from_millis(250), Duration::from_secs(5))
}
