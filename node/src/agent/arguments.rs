//! The agent's flags, with the original's names and defaults.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use flexinfer_core::hardware::marks::LabelPrefix;
use flexinfer_core::hardware::spot::signs::Sign;
use flexinfer_core::hardware::spot::{Cloud, signs};
use flexinfer_crds::Duration;

use crate::weights;

/// What the agent is started with.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// How often to look at the hardware
    #[arg(long, env = "FLEXINFER_AGENT_INTERVAL", default_value = "30s", value_parser = some_time)]
    pub interval: Duration,
    /// The port of the metrics page
    #[arg(long, env = "FLEXINFER_AGENT_METRICS_PORT", default_value_t = 9100)]
    pub metrics_port: u16,
    /// What copies of the labels begin with, for what else reads them; placement reads those under flexinfer.ai/
    #[arg(long, env = "FLEXINFER_AGENT_LABEL_PREFIX", default_value = "flexinfer.ai/")]
    pub label_prefix: LabelPrefix,
    /// The node to write to
    #[arg(long, env = "NODE_NAME")]
    pub node_name: Option<String>,
    /// Print each patch as a line of JSON and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Look once and end
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub(super) probing: Probing,
    #[command(flatten)]
    pub(super) noticing: Noticing,
    #[command(flatten)]
    pub(super) weights: weights::Arguments,
}

/// Where the hardware is looked for.
#[derive(Clone, Debug, Args)]
pub(super) struct Probing {
    /// NVIDIA's library, where it is not among the system's
    #[arg(long, env = "FLEXINFER_NVML", default_value = "libnvidia-ml.so.1", value_name = "FILE")]
    pub nvml: PathBuf,
    /// The host's root, for tools that are not in this container
    #[arg(long, env = "FLEXINFER_HOST_ROOT", default_value = "/host", value_name = "FOLDER")]
    pub host_root: PathBuf,
    /// The kernel's view of devices
    #[arg(long, env = "FLEXINFER_SYSFS", default_value = "/sys", value_name = "FOLDER")]
    pub sysfs: PathBuf,
    /// How long a tool or library may take
    #[arg(long, env = "FLEXINFER_PROBE_TIMEOUT", default_value = "10s")]
    pub probe_timeout: Duration,
}

/// How the end of the machine is noticed.
#[derive(Clone, Debug, Args)]
pub(super) struct Noticing {
    /// The cloud, or `auto` to find out, or `none` to watch only taints and annotations
    #[arg(long, env = "FLEXINFER_SPOT_CLOUD", default_value = "auto")]
    pub spot_cloud: Choice,
    /// How often the cloud is asked; taints and annotations are looked at half as often
    #[arg(long, env = "FLEXINFER_SPOT_INTERVAL", default_value = "5s", value_parser = some_time)]
    pub spot_interval: Duration,
    /// A taint (`key` or `key=value`) that says that the node goes away; may be repeated
    #[arg(long = "spot-taint", value_name = "KEY[=VALUE]", default_values = signs::TAINTS)]
    pub taints: Vec<Sign>,
    /// An annotation (`key` or `key=value`) that says so; may be repeated
    #[arg(long = "spot-annotation", value_name = "KEY[=VALUE]", default_values = signs::ANNOTATIONS)]
    pub annotations: Vec<Sign>,
    /// Where the cloud's metadata server is
    #[arg(
        long,
        env = "FLEXINFER_METADATA_URL",
        default_value = "http://169.254.169.254",
        value_name = "URL"
    )]
    pub metadata_url: String,
}

/// Whose metadata server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Whichever answers as itself.
    Auto,
    /// Nobody's.
    None,
    /// This cloud's.
    Cloud(Cloud),
}

impl std::str::FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            _ => text
                .parse()
                .map(Self::Cloud)
                .map_err(|_| "write auto, none, aws, azure or gcp".to_owned()),
        }
    }
}

/// A time that goes by; without any the agent would do nothing else.
fn some_time(text: &str) -> Result<Duration, String> {
    let time: Duration =
        text.parse().map_err(|error: flexinfer_crds::DurationError| error.to_string())?;
    if std::time::Duration::from(time).is_zero() {
        return Err("it must be longer than nothing, like `5s`".to_owned());
    }
    Ok(time)
}

impl Arguments {
    /// A folder of the node's own memory: the host's `/dev/shm`, else that of the weights. A container's own is another
    /// and small; it stands in where the agent runs in none.
    pub(super) fn memory(&self) -> PathBuf {
        let of_host = self.probing.host_root.join("dev/shm");
        let mut known = [&of_host].into_iter().chain(&self.weights.dir);
        known.find(|folder| folder.is_dir()).cloned().unwrap_or_else(|| PathBuf::from("/dev/shm"))
    }

    /// The node's name, without which nothing can be written.
    pub(super) fn node_name(&self) -> anyhow::Result<String> {
        match self.node_name.as_deref() {
            Some(name) if !name.is_empty() => Ok(name.to_owned()),
            _ if self.dry_run => Ok("this-node".to_owned()),
            _ => bail!(
                "the node has no name; set NODE_NAME from the pod's spec.nodeName, or use --node-name"
            ),
        }
    }
}
