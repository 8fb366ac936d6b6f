//! Tables of series are registered here, each under the names that its page tells.

use std::cell::RefCell;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry,
};

const PREFIX: &str = "flexinfer_proxy_";

/// One metric as its page tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Defined {
    /// With the prefix of all of them.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// The upper bounds of a histogram's buckets; nothing for other kinds.
    pub buckets: Vec<f64>,
    /// What it counts.
    pub help: String,
}

/// Registers tables, and keeps in mind what they are.
pub(super) struct Registrar<'a> {
    registry: &'a Registry,
    defined: RefCell<Vec<Defined>>,
}

impl<'a> Registrar<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self { registry, defined: RefCell::default() }
    }

    /// What was registered.
    pub(super) fn defined(self) -> Vec<Defined> {
        self.defined.into_inner()
    }

    fn note(&self, kind: &'static str, options: &Opts, labels: &[&str], buckets: &[f64]) {
        self.defined.borrow_mut().push(Defined {
            name: options.name.clone(),
            kind,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            buckets: buckets.to_vec(),
            help: options.help.clone(),
        });
    }

    pub(super) fn counter(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        let options = Opts::new(format!("{PREFIX}{name}"), help);
        self.note("counter", &options, labels, &[]);
        let table = IntCounterVec::new(options, labels)?;
        self.registry.register(Box::new(table.clone()))?;
        Ok(table)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> prometheus::Result<IntGaugeVec> {
        self.gauge_by(name, help, &["model"])
    }

    pub(super) fn gauge_by(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntGaugeVec> {
        let options = Opts::new(format!("{PREFIX}{name}"), help);
        self.note("gauge", &options, labels, &[]);
        let table = IntGaugeVec::new(options, labels)?;
        self.registry.register(Box::new(table.clone()))?;
        Ok(table)
    }

    pub(super) fn histogram(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> prometheus::Result<HistogramVec> {
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(buckets.to_vec());
        self.note("histogram", &options.common_opts, labels, buckets);
        let table = HistogramVec::new(options, labels)?;
        self.registry.register(Box::new(table.clone()))?;
        Ok(table)
    }

    /// A histogram without labels.
    pub(super) fn plain_histogram(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
    ) -> prometheus::Result<Histogram> {
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(buckets.to_vec());
        self.note("histogram", &options.common_opts, &[], buckets);
        let histogram = Histogram::with_opts(options)?;
        self.registry.register(Box::new(histogram.clone()))?;
        Ok(histogram)
    }
}
