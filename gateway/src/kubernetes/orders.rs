//! Carries out what the pools decide: probes, reports, and what people and metrics are told.

use std::collections::HashMap;
use std::sync::Arc;

use flexinfer_core::backends::Probe;
use flexinfer_core::ids::ModelId;
use flexinfer_core::queueing::{Notice, Traffic};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::adapters::Asked;
use super::models::Engine;
use super::pools::{Order, Pools};
use super::probing::Prober;
use super::reporting::Reporter;
use crate::local::Teller;

/// What has to be known of a model to carry out orders for it.
#[derive(Clone, Debug)]
pub(super) struct Dossier {
    pub(super) engine: Engine,
    /// What its engines are asked to have its adapters.
    pub(super) adapters: Option<Asked>,
    /// The latest use of it that anybody wrote.
    pub(super) last_active: Option<Timestamp>,
    /// The gateways that have an entry in its status, and when each was written.
    pub(super) entries: Vec<(String, Timestamp)>,
}

/// What is known of every model; kept by the observer.
pub(super) type Dossiers = Arc<Mutex<HashMap<ModelId, Dossier>>>;

/// Carries orders out.
pub(super) struct Hands {
    pub(super) pools: Arc<Pools>,
    pub(super) dossiers: Dossiers,
    pub(super) prober: Arc<Prober>,
    pub(super) reporter: Arc<Reporter>,
    pub(super) teller: Teller,
}

impl Hands {
    /// Until no pool is left that could give orders.
    pub(super) async fn carry_out(self, mut orders: mpsc::UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::Probe { model, endpoint, address } => {
                    if let Some(question) = self.question(&model) {
                        self.prober.begin(model, endpoint, address, question);
                    }
                }
                Order::Report { model, traffic } => self.report(model, traffic),
                Order::Tell { model, notice } => self.tell(&model, &notice),
            }
        }
    }

    fn question(&self, model: &ModelId) -> Option<Probe> {
        let dossiers = self.dossiers.lock();
        Some(match &dossiers.get(model)?.engine {
            Engine::Listed(probe) => probe.clone(),
            Engine::External(launch) => launch.probe.clone(),
        })
    }

    fn report(&self, model: ModelId, traffic: Traffic) {
        let dossier = self.dossiers.lock().get(&model).cloned();
        let pools = Arc::clone(&self.pools);
        let ended = move |model: &ModelId, arrived| {
            pools.act(model, |pool, now| pool.reported(now, arrived, rand::random::<f64>()));
        };
        match dossier {
            Some(Dossier { engine: Engine::Listed(_), adapters: _, last_active, entries }) => {
                let reporter = Arc::clone(&self.reporter);
                tokio::spawn(async move {
                    let arrived = reporter.write(&model, traffic, last_active).await;
                    ended(&model, arrived);
                    if arrived {
                        reporter.clear(&model, &entries).await;
                    }
                });
            }
            // Nobody starts or stops an external engine, so that nobody has to know.
            Some(Dossier { engine: Engine::External(_), .. }) | None => ended(&model, true),
        }
    }

    fn tell(&self, model: &ModelId, notice: &Notice) {
        self.teller.notice(model, notice);
    }
}
