//! Under which names a model is offered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Under which names the model is offered, here and to a LiteLLM in front of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiteLlm {
    /// The default is true. False parks the model: it answers to nobody and is not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// The name to offer it by, beside its own. The default is the model's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub served_model_name: Option<String>,

    /// More names that requests may use, such as `gpt-4o-mini`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub aliases: Vec<String>,

    /// The name under which editors' assistants find the model. Requests cannot use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub copilot_alias: Option<String>,
}
