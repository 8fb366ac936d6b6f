//! What a model can do, where its backend does not tell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the model can do. What is not said here is inferred from backend and `config`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Whether it calls tools. The default is true for vllm and ollama, and for llamacpp with
    /// `config.jinja`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calling: Option<bool>,

    /// Whether it sees images. The default is true for llamacpp with `config.mmproj`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,

    /// Whether it makes images. The default is true for the image backends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_generation: Option<bool>,
}
