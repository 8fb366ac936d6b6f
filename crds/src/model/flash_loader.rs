//! Copying weights to memory before an engine starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;

/// Copies the weights to memory before the engine starts, by many readers at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlashLoader {
    /// The default is true for models with `gpu.shared` and `cache.strategy: Local`, else the
    /// controller's `DEFAULT_FLASH_LOADER_ENABLED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Files copied at once, 1 to 32. The default is `DEFAULT_FLASH_LOADER_CONCURRENCY`, 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub concurrency: Option<i32>,

    /// The most memory the copy may take. The default is
    /// `DEFAULT_FLASH_LOADER_TMPFS_SIZE_LIMIT`, else no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmpfs_size_limit: Option<Quantity>,

    /// The size of one read in KiB, 32 to 16384. The default is `DEFAULT_FLASH_LOADER_BUFFER_KB`,
    /// 4096.
    #[serde(default, rename = "bufferSizeKB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 32, max = 16384))]
    pub buffer_size_kb: Option<i32>,

    /// Whether the copies are checked. The default is `DEFAULT_FLASH_LOADER_VERIFY`, false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_integrity: Option<bool>,

    /// The loader's image. The default is `DEFAULT_FLASH_LOADER_IMAGE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub image: Option<String>,

    /// Whether nodes that hold the weights serve them to others, so that the volume is read once.
    /// Copies are checked by digest; the volume is read where no node answers. The default is true
    /// for a model that shares its GPU, where the controller knows of such nodes; no other model
    /// leaves a copy that could be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p2p: Option<bool>,

    /// The port on which nodes serve weights. The default is the controller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub p2p_port: Option<i32>,
}
