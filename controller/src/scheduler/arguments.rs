//! The flags of `scheduler`, with the original's variables and defaults.

use clap::Args;
use clap::builder::BoolishValueParser;
use flexinfer_core::placement::FairShare;
use flexinfer_core::placement::score::Weights;
use flexinfer_crds::keys;
use serde_json::{Value, json};

/// How the extender answers.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// Port that kube-scheduler asks at, for metrics and health too
    #[arg(long, env = "FLEXINFER_SCHEDULER_PORT", default_value_t = 8082)]
    pub port: u16,
    /// Address to listen on
    #[arg(long, env = "FLEXINFER_SCHEDULER_HOST", default_value = "0.0.0.0")]
    pub host: std::net::IpAddr,
    /// The namespace of the ConfigMap with benchmark results
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    pub namespace: String,
    /// The ConfigMap with benchmark results
    #[arg(long, env = "BENCHMARK_RESULTS_CONFIGMAP", value_name = "NAME",
        default_value = keys::BENCHMARK_RESULTS)]
    pub results: String,
    /// For each token per second of a node
    #[arg(long, env = "SCHED_TPS_WEIGHT", value_name = "NUMBER", default_value_t = 0.7,
        value_parser = finite, allow_negative_numbers = true)]
    pub tps_weight: f64,
    /// Against each percent of its GPUs in use
    #[arg(long, env = "SCHED_UTIL_WEIGHT", value_name = "NUMBER", default_value_t = 0.2,
        value_parser = finite, allow_negative_numbers = true)]
    pub util_weight: f64,
    /// Against its cost per hour
    #[arg(long, env = "SCHED_COST_WEIGHT", value_name = "NUMBER", default_value_t = 0.1,
        value_parser = finite, allow_negative_numbers = true)]
    pub cost_weight: f64,
    /// Against its use of the key-value cache
    #[arg(long, env = "SCHED_CACHE_WEIGHT", value_name = "NUMBER", default_value_t = 0.3,
        value_parser = finite, allow_negative_numbers = true)]
    pub cache_weight: f64,
    /// For its free GPU memory
    #[arg(long, env = "SCHED_VRAM_FREE_WEIGHT", value_name = "NUMBER", default_value_t = 10.0,
        value_parser = finite, allow_negative_numbers = true)]
    pub vram_free_weight: f64,
    /// Move tenants that have more than their budget away from the nodes that everybody wants
    #[arg(long, env = "SCHED_TENANT_FAIRSHARE_ENABLED", num_args = 0..=1,
        default_missing_value = "true", default_value = "false",
        value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub tenant_fairshare: bool,
    /// How much that counts
    #[arg(long, env = "SCHED_TENANT_FAIRSHARE_WEIGHT", value_name = "NUMBER", default_value_t = 5.0,
        value_parser = finite, allow_negative_numbers = true)]
    pub tenant_fairshare_weight: f64,
    /// The GPUs that a tenant may have without giving way
    #[arg(long, env = "SCHED_TENANT_FAIRSHARE_BUDGET_GPUS", value_name = "NUMBER",
        default_value_t = 1.0, value_parser = finite)]
    pub tenant_fairshare_budget_gpus: f64,
    /// The label of pods that names their tenant [default: their namespace is]
    #[arg(long, env = "SCHED_TENANT_LABEL_KEY", value_name = "KEY")]
    pub tenant_label_key: Option<String>,
    /// Print the settings in force as JSON and end
    #[arg(long)]
    pub print_settings: bool,
}

impl Arguments {
    pub(super) fn weights(&self) -> Weights {
        Weights {
            tps: self.tps_weight,
            util: self.util_weight,
            cost: self.cost_weight,
            cache: self.cache_weight,
            vram_free: self.vram_free_weight,
        }
    }

    pub(super) fn fair_share(&self) -> Option<FairShare> {
        self.tenant_fairshare.then_some(FairShare {
            weight: self.tenant_fairshare_weight,
            budget: self.tenant_fairshare_budget_gpus,
        })
    }

    pub(super) fn tenant_label(&self) -> Option<&str> {
        self.tenant_label_key.as_deref().filter(|key| !key.is_empty())
    }

    /// By the names of the flags.
    pub(super) fn shown(&self) -> Value {
        let Self {
            port,
            host,
            namespace,
            results,
            tps_weight,
            util_weight,
            cost_weight,
            cache_weight,
            vram_free_weight,
            tenant_fairshare,
            tenant_fairshare_weight,
            tenant_fairshare_budget_gpus,
            tenant_label_key: _,
            print_settings: _,
        } = self;
        json!({
            "cache-weight": cache_weight,
            "cost-weight": cost_weight,
            "host": host,
            "namespace": namespace,
            "port": port,
            "results": results,
            "tenant-fairshare": tenant_fairshare,
            "tenant-fairshare-budget-gpus": tenant_fairshare_budget_gpus,
            "tenant-fairshare-weight": tenant_fairshare_weight,
            "tenant-label-key": self.tenant_label(),
            "tps-weight": tps_weight,
            "util-weight": util_weight,
            "vram-free-weight": vram_free_weight,
        })
    }
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "write a number such as 0.7".to_owned())
}
