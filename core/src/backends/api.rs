//! The families of APIs that engines serve. `openai` owns the paths of each family; a backend only
//! says which families its engine has, so that a request never reaches one that cannot answer it.

/// One family of HTTP APIs, as the engines' own documentation groups them.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::IntoStaticStr,
    strum::EnumIter,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Api {
    /// OpenAI chat completions.
    Chat,
    /// OpenAI (legacy) completions.
    Completions,
    /// OpenAI embeddings.
    Embeddings,
    /// OpenAI responses.
    Responses,
    /// OpenAI responses that the engine keeps, or may keep: their retrieval, cancellation and deletion.
    StoredResponses,
    /// OpenAI image generations.
    ImageGenerations,
    /// OpenAI image edits (a multipart form).
    ImageEdits,
    /// OpenAI image variations (a multipart form).
    ImageVariations,
    /// OpenAI text to speech.
    AudioSpeech,
    /// OpenAI speech to text (a multipart form).
    AudioTranscriptions,
    /// OpenAI speech to English text (a multipart form).
    AudioTranslations,
    /// OpenAI moderations.
    Moderations,
    /// Jina and Cohere style reranking.
    Rerank,
    /// vLLM's score of text pairs.
    Score,
    /// OpenAI realtime, over a WebSocket.
    Realtime,
    /// Anthropic messages and their token count.
    Messages,
    /// Text to tokens and back.
    Tokenize,
    /// Ollama's own API below `/api/`.
    OllamaNative,
    /// llama-server's own API: `/completion`, `/infill`, `/slots` and the like.
    LlamaCppNative,
    /// The Stable Diffusion web UI's API below `/sdapi/`.
    SdApi,
    /// ComfyUI's own API: `/prompt`, `/history`, `/view`, `/ws`.
    ComfyUi,
}
