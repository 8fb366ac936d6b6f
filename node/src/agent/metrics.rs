//! What the agent shows, under the original's names, and the page that shows it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flexinfer_core::hardware::{Gpu, Survey};
use prometheus::{Encoder as _, GaugeVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};
use tokio::task::JoinHandle;

use crate::listening;

/// Series of one node. A failed look leaves them as they were and says that they are old.
pub(super) struct Metrics {
    registry: Registry,
    node: String,
    /// A folder of the node's own memory, where models are kept.
    memory: PathBuf,
    temperature: GaugeVec,
    free: GaugeVec,
    total: GaugeVec,
    used: GaugeVec,
    utilization: GaugeVec,
    shared_memory: GaugeVec,
    stale: IntGauge,
    looks: IntCounterVec,
}

impl Metrics {
    pub(super) fn new(node: &str, memory: PathBuf) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        let of_gpu = ["gpu", "node", "vendor"];
        let temperature =
            gauges("flexinfer_gpu_temperature_celsius", "Temperature of a GPU.", &["gpu", "node"])?;
        let free = gauges("flexinfer_gpu_vram_free_bytes", "Free memory of a GPU.", &of_gpu)?;
        let total = gauges("flexinfer_gpu_vram_total_bytes", "Memory of a GPU.", &of_gpu)?;
        let used = gauges("flexinfer_gpu_vram_used_bytes", "Memory of a GPU in use.", &of_gpu)?;
        let utilization = gauges(
            "flexinfer_gpu_vram_utilization_percent",
            "Share of a GPU's memory in use.",
            &of_gpu,
        )?;
        let shared_memory = gauges(
            "flexinfer_dev_shm_utilization_percent",
            "Share of the node's /dev/shm in use.",
            &["node"],
        )?;
        let stale = IntGauge::new(
            "flexinfer_agent_stale",
            "1 while the last look at the GPUs failed and their numbers are older ones.",
        )?;
        let looks = IntCounterVec::new(
            Opts::new("flexinfer_agent_looks_total", "Looks at the hardware, by result."),
            &["result"],
        )?;
        registry.register(Box::new(stale.clone()))?;
        registry.register(Box::new(looks.clone()))?;
        let node = node.to_owned();
        Ok(Self {
            registry,
            node,
            memory,
            temperature,
            free,
            total,
            used,
            utilization,
            shared_memory,
            stale,
            looks,
        })
    }

    /// Takes over what a look found; `None` if it failed.
    pub(super) fn looked(&self, survey: Option<&Survey>) {
        self.looks.with_label_values(&[if survey.is_some() { "ok" } else { "failed" }]).inc();
        self.stale.set(i64::from(survey.is_none()));
        if let Some(percent) = in_use(&self.memory) {
            self.shared_memory.with_label_values(&[&self.node]).set(percent);
        }
        let Some(survey) = survey else { return };
        for gauges in [&self.temperature, &self.free, &self.total, &self.used, &self.utilization] {
            gauges.reset();
        }
        survey.gpus.iter().for_each(|gpu| self.show(gpu));
    }

    fn show(&self, gpu: &Gpu) {
        if let Some(degrees) = gpu.temperature {
            self.temperature.with_label_values(&[&gpu.id, &self.node]).set(degrees);
        }
        let vendor = gpu.vendor.to_string();
        let labels = [gpu.id.as_str(), self.node.as_str(), vendor.as_str()];
        let memory = gpu.memory;
        for (gauges, bytes) in
            [(&self.free, memory.free()), (&self.total, memory.total), (&self.used, memory.used)]
        {
            if let Some(bytes) = bytes {
                gauges.with_label_values(&labels).set(as_number(bytes));
            }
        }
        if let (Some(total @ 1..), Some(used)) = (memory.total, memory.used) {
            self.utilization
                .with_label_values(&labels)
                .set(100.0 * as_number(used) / as_number(total));
        }
    }

    fn page(&self) -> Response {
        let mut page = Vec::new();
        match TextEncoder::new().encode(&self.registry.gather(), &mut page) {
            Ok(()) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], page).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}

/// Serves `/metrics` and `/healthz` on `port` of all addresses.
pub(super) async fn serve(metrics: Arc<Metrics>, port: u16) -> anyhow::Result<JoinHandle<()>> {
    let listener = listening::everywhere(port).await.with_context(|| {
        format!("port {port} cannot be listened on; choose another with --metrics-port")
    })?;
    let address = listener.local_addr().context("the metrics page has no address")?;
    tracing::info!(%address, "serving /metrics");
    let routes = Router::new()
        .route("/metrics", get(move || async move { metrics.page() }))
        .route("/healthz", get(|| async { "ok\n" }));
    Ok(tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(error = %error, "the metrics page ended");
        }
    }))
}

/// Percent of the file system of `folder` in use.
fn in_use(folder: &Path) -> Option<f64> {
    let room = rustix::fs::statvfs(folder).ok().filter(|room| room.f_blocks > 0)?;
    let used = room.f_blocks.saturating_sub(room.f_bfree);
    Some(100.0 * as_number(used) / as_number(room.f_blocks))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; beyond 9 PB its last digits do not matter"
)]
fn as_number(count: u64) -> f64 {
    count as f64
}
