//! How many models are in each phase.

use std::collections::BTreeMap;
use std::sync::Arc;

use flexinfer_core::ids::ModelId;
use flexinfer_crds::model::Phase;
use parking_lot::Mutex;
use prometheus::{IntGaugeVec, Opts, Registry};

#[derive(Clone)]
pub(super) struct Census {
    models: IntGaugeVec,
    /// The phase that each model is counted in.
    counted: Arc<Mutex<BTreeMap<ModelId, Phase>>>,
}

impl Census {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let options = Opts::new("flexinfer_models_total", "Models in each phase.");
        let models = IntGaugeVec::new(options, &["phase"])?;
        registry.register(Box::new(models.clone()))?;
        Ok(Self { models, counted: Arc::default() })
    }

    /// Counts a model in `phase`, and in no other.
    pub(super) fn count(&self, model: &ModelId, phase: Option<Phase>) {
        let mut counted = self.counted.lock();
        let before = match phase {
            Some(phase) => counted.insert(model.clone(), phase),
            None => counted.remove(model),
        };
        let one_of = |phase: Phase| self.models.with_label_values(&[<&str>::from(phase)]);
        if let Some(before) = before {
            one_of(before).dec();
        }
        if let Some(now) = phase {
            one_of(now).inc();
        }
    }
}
