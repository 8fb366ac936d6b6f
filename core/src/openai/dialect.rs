//! In whose words the gateway answers by itself: those of the API that was called, since its clients
//! read no others.

use crate::backends::Api;

/// A family of clients that read errors and lists in the same shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display, strum::EnumIter)]
pub enum Dialect {
    /// OpenAI's, which llama.cpp and vLLM speak too.
    #[default]
    #[strum(serialize = "OpenAI")]
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Ollama's.
    Ollama,
    /// That of the Stable Diffusion web UI.
    #[strum(serialize = "SD-API")]
    StableDiffusion,
    /// ComfyUI's.
    #[strum(serialize = "ComfyUI")]
    ComfyUi,
}

impl Dialect {
    /// The dialect of a family of APIs.
    pub const fn of(api: Api) -> Self {
        match api {
            Api::Messages => Self::Anthropic,
            Api::OllamaNative => Self::Ollama,
            Api::SdApi => Self::StableDiffusion,
            Api::ComfyUi => Self::ComfyUi,
            Api::Chat
            | Api::Completions
            | Api::Embeddings
            | Api::Responses
            | Api::StoredResponses
            | Api::ImageGenerations
            | Api::ImageEdits
            | Api::ImageVariations
            | Api::AudioSpeech
            | Api::AudioTranscriptions
            | Api::AudioTranslations
            | Api::Moderations
            | Api::Rerank
            | Api::Score
            | Api::Realtime
            | Api::Tokenize
            | Api::LlamaCppNative => Self::OpenAi,
        }
    }

    /// What whoever asks for a path that is in no table most likely speaks.
    pub(super) fn guessed(path: &str) -> Self {
        if path.starts_with("/api/") {
            Self::Ollama
        } else if path.starts_with("/sdapi/") {
            Self::StableDiffusion
        } else {
            Self::OpenAi
        }
    }
}
