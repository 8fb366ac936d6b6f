//! What the gateway counts, under the names that the original's dashboards know
//! (`flexinfer_proxy_…`). A label's value is a model that exists, never a name that a client made up.

mod labels;
mod model;
#[cfg(test)]
mod reference;
mod registrar;
mod routing;
mod series;
mod tables;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::routing::LabelRouting;
use foldhash::fast::RandomState;
use parking_lot::RwLock;
use prometheus::{Encoder, Registry, TextEncoder};

pub use model::{ModelSeries, Outcome};
pub use registrar::Defined;
use tables::Tables;

/// All series of one gateway.
pub struct Metrics {
    registry: Registry,
    tables: Tables,
    models: RwLock<HashMap<String, ModelSeries, RandomState>>,
    /// What there is, as the page of metrics tells it.
    defined: Vec<Defined>,
}

impl Metrics {
    /// Series in a registry of their own, so that several gateways fit in one process.
    pub fn new() -> Result<Arc<Self>, prometheus::Error> {
        let registry = Registry::new();
        let (tables, defined) = Tables::register(&registry)?;
        Ok(Arc::new(Self { registry, tables, models: RwLock::default(), defined }))
    }

    /// Begins the series of each of `models` at zero, and ends those of models that are no more.
    pub fn know<'a>(&self, models: impl IntoIterator<Item = &'a str>) {
        let mut known = self.models.write();
        let mut gone = std::mem::take(&mut *known);
        for name in models {
            let series = gone.remove(name).unwrap_or_else(|| self.tables.model(name));
            known.insert(name.to_owned(), series);
        }
        for (name, series) in &gone {
            series.keep_targets(|_| false);
            self.tables.forget(name);
        }
    }

    /// The series of the model that is listed as `name`. A model that is not known yet (it was added a
    /// moment ago) becomes known.
    pub fn model(&self, name: &str) -> ModelSeries {
        if let Some(series) = self.models.read().get(name) {
            return series.clone();
        }
        let mut known = self.models.write();
        known.entry(name.to_owned()).or_insert_with(|| self.tables.model(name)).clone()
    }

    /// `model` was chosen for a service label by `strategy`; `ready` says whether it was up.
    pub(crate) fn label_routed(
        &self,
        label: &str,
        strategy: LabelRouting,
        model: &str,
        ready: bool,
    ) {
        self.tables.labels.count(label, strategy, model, ready);
    }

    /// The endpoints that changed were handed on, which took this long.
    pub fn endpoints_refreshed(&self, took: Duration) {
        self.tables.endpoint_refresh_duration.observe(took.as_secs_f64());
    }

    /// The TLS certificate that is shown now expires at this second of Unix time.
    pub fn tls_certificate_expires(&self, second: i64) {
        self.tables.tls_certificate_expiry.with_label_values::<&str>(&[]).set(second);
    }

    /// The files of the TLS certificate have changed, and count or not.
    pub fn tls_certificate_reloaded(&self, counts: bool) {
        let result = if counts { "success" } else { "failure" };
        self.tables.tls_certificate_reloads.with_label_values(&[result]).inc();
    }

    /// Counts a shutdown that begins.
    pub fn shutdown_started(&self) {
        self.tables.shutdowns.with_label_values(&["started"]).inc();
    }

    /// Counts a shutdown that is over.
    pub fn shutdown_ended(&self, completed: bool, took: Duration) {
        let result = if completed { "completed" } else { "timeout" };
        self.tables.shutdowns.with_label_values(&[result]).inc();
        self.tables.shutdown_duration.observe(took.as_secs_f64());
    }

    /// Every metric there is.
    pub fn defined(&self) -> &[Defined] {
        &self.defined
    }

    /// Everything in Prometheus' text format.
    pub fn page(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut page = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut page)?;
        Ok(page)
    }
}
