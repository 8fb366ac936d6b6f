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

use super::orders::Dossiers;
use super::pools::Pools;
use crate::adapters::OnDemand;
use crate::ask::{self, Answer};
use crate::secrets::Secrets;
use crate::way::Way;

/// Runs one task for each endpoint in question.
pub(super) struct Prober {
    pools: Weak<Pools>,
    runtime: Handle,
    secrets: Arc<Secrets>,
    dossiers: Dossiers,
    adapters: Arc<OnDemand>,
    running: Mutex<HashMap<(ModelId, EndpointId), AbortHandle>>,
}

impl Prober {
    /// Tells `pools` who answers, and has the adapters that `dossiers` know, from tasks on `runtime`.
    pub(super) fn new(
        pools: &Arc<Pools>,
        secrets: Arc<Secrets>,
        dossiers: Dossiers,
        adapters: Arc<OnDemand>,
        runtime: Handle,
    ) -> Arc<Self> {
        let pools = Arc::downgrade(pools);
        Arc::new(Self { pools, runtime, secrets, dossiers, adapters, running: Mutex::default() })
    }

    /// Asks the endpoint until it answers or is in question no more. A second call for the same endpoint
    /// takes the place of the first.
    pub(super) fn begin(
        self: &Arc<Self>,
        model: ModelId,
        endpoint: EndpointId,
        address: SocketAddr,
        probe: Probe,
    ) {
        let key = (model, endpoint);
        let task = Arc::clone(self).ask(key.clone(), address, probe);
        let task = self.runtime.spawn(task).abort_handle();
        let mut running = self.running.lock();
        running.retain(|_, task| !task.is_finished());
        if let Some(before) = running.insert(key, task) {
            before.abort();
        }
    }

    async fn ask(self: Arc<Self>, key: (ModelId, EndpointId), address: SocketAddr, probe: Probe) {
        let (model, endpoint) = key;
        let began = Instant::now();
        loop {
            let asked = || Some(self.pools.upgrade()?.in_question(&model, &endpoint, address));
            if asked() != Some(true) {
                return;
            }
            let patience = patience(began.elapsed());
            let answer = self.probe(&model, address, &probe, patience).await;
            if answer == Answer::Ready {
                self.equip(&model, address).await;
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
    /// Has an engine that was or may have been away load the adapters that its model has now.
    async fn equip(&self, model: &ModelId, address: SocketAddr) {
        self.adapters.forget_engine(address);
        let asked = self.dossiers.lock().get(model).and_then(|dossier| dossier.adapters.clone());
        let served = self.pools.upgrade().and_then(|pools| pools.served(model));
        let Some((asked, served)) = asked.zip(served) else { return };
        for asked in asked.ask(&self.adapters, &served, address) {
            // How it ended was told.
            let _ = asked.await;
        }
    }

    /// Asks one engine of `model`, with the key that it wants to know its clients by.
    async fn probe(
        &self,
        model: &ModelId,
        address: SocketAddr,
        probe: &Probe,
        patience: Duration,
    ) -> Answer {
        let served = self.pools.upgrade().and_then(|pools| pools.served(model));
        let plain = Spoken::default();
        let way = match &served {
            Some(served) => Way::to(address, &served.effective, &self.secrets),
            None => Way::new(address, &plain, None, &self.secrets),
        };
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
