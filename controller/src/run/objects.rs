//! The settings of the objects that are made: the original's variables, under its defaults.

use clap::{ArgAction, Args};
use flexinfer_core::planning::objects::{Benchmarks, FlashDefaults, Images, Settings};
use flexinfer_crds::Quantity;
use serde_json::{Map, Value, json};

/// What engines' pods are made with.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Engines' pods")]
pub struct Objects {
    /// The size of /dev/shm
    #[arg(long, env = "DEFAULT_SHM_SIZE_LIMIT", default_value = "8Gi", value_parser = quantity)]
    pub shm_size: Quantity,
    /// Copy weights to memory before the engine starts, where a Model says nothing
    #[arg(long, env = "DEFAULT_FLASH_LOADER_ENABLED", default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub flash_loader: bool,
    /// Files that it copies at once
    #[arg(long, env = "DEFAULT_FLASH_LOADER_CONCURRENCY", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=32))]
    pub flash_loader_concurrency: u32,
    /// The most memory that a copy may take
    #[arg(long, env = "DEFAULT_FLASH_LOADER_TMPFS_SIZE_LIMIT", value_parser = quantity)]
    pub flash_loader_tmpfs_size_limit: Option<Quantity>,
    /// The size of one read in KiB
    #[arg(long, env = "DEFAULT_FLASH_LOADER_BUFFER_KB", default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(32..=16384))]
    pub flash_loader_buffer_kb: u32,
    /// Whether copies are checked
    #[arg(long, env = "DEFAULT_FLASH_LOADER_VERIFY", default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub flash_loader_verify: bool,
    /// Files that are not copied, as patterns
    #[arg(long, env = "DEFAULT_FLASH_LOADER_EXCLUDE", value_delimiter = ',')]
    pub flash_loader_exclude: Vec<String>,
    /// Other nodes that hand on what they hold in memory, as host:port; a name may have many addresses
    #[arg(long, env = "DEFAULT_FLASH_LOADER_PEERS", value_delimiter = ',', value_name = "ADDRESS")]
    pub flash_loader_peers: Vec<String>,
    /// Secrets that images are pulled with, in the namespace of each model
    #[arg(long, env = "FLEXINFER_IMAGE_PULL_SECRETS", value_delimiter = ',')]
    pub image_pull_secrets: Vec<String>,
    /// The Secret whose key HF_TOKEN opens gated repositories, in the namespace of each model
    #[arg(long, env = "FLEXINFER_HF_TOKEN_SECRET", default_value = "hf-token")]
    pub hf_token_secret: String,
    /// Another hub than the public one
    #[arg(long, env = "HF_ENDPOINT")]
    pub hf_endpoint: Option<String>,
    /// Registries that weights are fetched from over plain http, as host or host:port
    #[arg(long, env = "FLEXINFER_INSECURE_REGISTRIES", value_delimiter = ',')]
    pub insecure_registries: Vec<String>,
    /// Folders of the nodes below which Models may mount
    #[arg(
        long,
        env = "FLEXINFER_HOST_FOLDERS",
        value_delimiter = ',',
        default_value = "/var/lib/flexinfer"
    )]
    pub host_folders: Vec<String>,
    /// The scheduler of engines' pods, if it is not the cluster's own
    #[arg(long, env = "FLEXINFER_SCHEDULER_NAME")]
    pub scheduler_name: Option<String>,
}

impl Objects {
    /// As planning takes them, with every image that the environment names.
    pub(crate) fn settings(&self) -> Settings {
        let Self {
            shm_size,
            flash_loader,
            flash_loader_concurrency,
            flash_loader_tmpfs_size_limit,
            flash_loader_buffer_kb,
            flash_loader_verify,
            flash_loader_exclude,
            flash_loader_peers,
            image_pull_secrets,
            hf_token_secret,
            hf_endpoint,
            insecure_registries,
            host_folders,
            scheduler_name,
        } = self.clone();
        Settings {
            images: Images::of(std::env::vars()),
            shm_size,
            flash: FlashDefaults {
                enabled: flash_loader,
                concurrency: flash_loader_concurrency,
                tmpfs_size_limit: flash_loader_tmpfs_size_limit,
                buffer_kb: flash_loader_buffer_kb,
                verify: flash_loader_verify,
                exclude: written(flash_loader_exclude),
                peers: written(flash_loader_peers),
            },
            pull_secrets: written(image_pull_secrets),
            hub_token_secret: hf_token_secret,
            hub_endpoint: hf_endpoint.filter(|endpoint| !endpoint.is_empty()),
            insecure_registries: written(insecure_registries),
            host_folders: written(host_folders),
            scheduler: scheduler_name.filter(|name| !name.is_empty()),
            benchmarks: Benchmarks::default(),
        }
    }

    /// The settings in force; of images, those that the environment names, by variable.
    pub(super) fn shown(&self) -> Map<String, Value> {
        let Settings {
            images,
            shm_size,
            flash,
            pull_secrets,
            hub_token_secret,
            hub_endpoint,
            insecure_registries,
            host_folders,
            scheduler,
            // Those of another group of settings.
            benchmarks: _,
        } = self.settings();
        let limit = flash.tmpfs_size_limit.map(|limit| limit.to_string());
        [
            ("shm-size", json!(shm_size.to_string())),
            ("flash-loader", json!(flash.enabled)),
            ("flash-loader-concurrency", json!(flash.concurrency)),
            ("flash-loader-tmpfs-size-limit", json!(limit)),
            ("flash-loader-buffer-kb", json!(flash.buffer_kb)),
            ("flash-loader-verify", json!(flash.verify)),
            ("flash-loader-exclude", json!(flash.exclude)),
            ("flash-loader-peers", json!(flash.peers)),
            ("image-pull-secrets", json!(pull_secrets)),
            ("hf-token-secret", json!(hub_token_secret)),
            ("hf-endpoint", json!(hub_endpoint)),
            ("insecure-registries", json!(insecure_registries)),
            ("host-folders", json!(host_folders)),
            ("scheduler-name", json!(scheduler)),
            ("images", json!(images.set())),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

/// A variable that is set to nothing names nothing.
fn written(list: Vec<String>) -> Vec<String> {
    let trimmed = list.into_iter().map(|text| text.trim().to_owned());
    trimmed.filter(|text| !text.is_empty()).collect()
}

fn quantity(text: &str) -> Result<Quantity, String> {
    let quantity = Quantity::new(text);
    quantity.number().map_err(|error| error.to_string())?;
    Ok(quantity)
}
