//! When a model sleeps and how many engines it may have.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::Duration;

/// When the model goes to sleep, and how many engines it has while awake.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = &rules::MAX_REPLICAS_NOT_BELOW_MIN)]
pub struct Serverless {
    /// Whether the model sleeps while nobody uses it. The default is true; false keeps one
    /// engine up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Engines that stay up without any request, 0 to 10. The default is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10))]
    pub min_replicas: Option<i32>,

    /// The most engines that load may ask for, 1 to 100. The default is 1, or `minReplicas` if
    /// that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_replicas: Option<i32>,

    /// How long nothing may be in flight before the model goes to sleep. The default is the
    /// backend's: `5m` for text, `10m` for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,

    /// How long a request may wait for the model to wake up. The default is the gateway's
    /// `PROXY_COLD_START_TIMEOUT`, `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_start_timeout: Option<Duration>,
}
