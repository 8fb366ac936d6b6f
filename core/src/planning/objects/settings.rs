//! What the controller's own configuration says about the objects it makes.

use flexinfer_crds::{Quantity, keys};

use super::Images;

/// The part of the controller's settings that planning needs. The controller fills it from its
/// environment; [`Settings::default`] is what an empty environment means.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Every variable that names an image.
    pub images: Images,
    /// `DEFAULT_SHM_SIZE_LIMIT`: the size of `/dev/shm` in an engine's pod; default `8Gi`.
    pub shm_size: Quantity,
    /// The flash loader where a Model says nothing.
    pub flash: FlashDefaults,
    /// Secrets that images are pulled with, in the namespace of each model.
    pub pull_secrets: Vec<String>,
    /// The Secret, in the namespace of each model, whose key `HF_TOKEN` opens gated repositories; it need
    /// not exist. Default `hf-token`.
    pub hub_token_secret: String,
    /// Another hub than the public one (`HF_ENDPOINT`).
    pub hub_endpoint: Option<String>,
    /// Registries that weights are fetched from over plain http (`FLEXINFER_INSECURE_REGISTRIES`).
    pub insecure_registries: Vec<String>,
    /// Folders of the nodes below which Models may mount; default `/var/lib/flexinfer`.
    pub host_folders: Vec<String>,
    /// The scheduler of engines' pods, if it is not the cluster's own.
    pub scheduler: Option<String>,
    /// The Jobs that measure models.
    pub benchmarks: Benchmarks,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            images: Images::default(),
            shm_size: Quantity::new("8Gi"),
            flash: FlashDefaults::default(),
            pull_secrets: Vec::new(),
            hub_token_secret: "hf-token".to_owned(),
            hub_endpoint: None,
            insecure_registries: Vec::new(),
            host_folders: vec!["/var/lib/flexinfer".to_owned()],
            scheduler: None,
            benchmarks: Benchmarks::default(),
        }
    }
}

/// The Jobs that measure models, but for their image, which [`Images`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Benchmarks {
    /// `BENCHMARK_SERVICE_ACCOUNT`, in the namespace of each model: it may read pods and nodes and write
    /// ConfigMaps. Without one nothing is measured.
    pub service_account: Option<String>,
    /// `PROXY_URL`: where the gateway is. Without it nothing is measured.
    pub gateway: Option<String>,
    /// What the gateway asks callers for, in a Secret in the namespace of each model.
    pub key: Option<SecretKey>,
    /// The authorities that sign for the gateway, in a Secret in the namespace of each model; without it the system's.
    pub ca: Option<SecretKey>,
    /// `BENCHMARK_RESULTS_CONFIGMAP`, default `flexinfer-benchmark-results`.
    pub results: String,
    /// The namespace of that ConfigMap: the controller's and the scheduler's.
    pub results_namespace: String,
}

/// A value in a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// The Secret.
    pub name: String,
    /// The key in it.
    pub key: String,
}

impl Default for Benchmarks {
    fn default() -> Self {
        Self {
            service_account: None,
            gateway: None,
            key: None,
            ca: None,
            results: keys::BENCHMARK_RESULTS.to_owned(),
            results_namespace: "default".to_owned(),
        }
    }
}

/// The flash loader where a Model says nothing: the variables `DEFAULT_FLASH_LOADER_*`, but for its image,
/// which [`Images`] has.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashDefaults {
    /// `…_ENABLED`, default false.
    pub enabled: bool,
    /// `…_CONCURRENCY`, 1 to 32, default 4.
    pub concurrency: u32,
    /// `…_TMPFS_SIZE_LIMIT`, default none.
    pub tmpfs_size_limit: Option<Quantity>,
    /// `…_BUFFER_KB`, 32 to 16384, default 4096.
    pub buffer_kb: u32,
    /// `…_VERIFY`, default false.
    pub verify: bool,
    /// `…_EXCLUDE`, default none.
    pub exclude: Vec<String>,
    /// `…_PEERS`: other nodes that hand on what they hold, as `host:port`; default none.
    pub peers: Vec<String>,
}

impl Default for FlashDefaults {
    fn default() -> Self {
        Self {
            enabled: false,
            concurrency: 4,
            tmpfs_size_limit: None,
            buffer_kb: 4096,
            verify: false,
            exclude: Vec::new(),
            peers: Vec::new(),
        }
    }
}
