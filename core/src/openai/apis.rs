//! The table of every path that is served, by engines or by the gateway itself. What a request asks
//! for, in whose dialect it is refused, whether its answer is a stream and whether it may be tried
//! again all come from here, and so does `docs/reference/apis.md`. A new API is a row here and a name
//! in the backends that serve it.

use super::Dialect;
use crate::backends::Api;

/// One path of an engine's API.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The methods it is called with, as an `Allow` header lists them.
    pub methods: &'static str,
    /// The path, to the letter; `{…}` stands for one part that is not empty.
    pub path: &'static str,
    /// The family that an engine must serve.
    pub api: Api,
    /// Where a request names its model, where neither header nor path do.
    pub model_at: ModelAt,
    /// When its answer is a stream.
    pub streams: Streams,
    /// What ties it to the engine that other requests went to.
    pub tied: Option<Tie>,
}

/// Where a request names its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelAt {
    /// The field `model` of a JSON object.
    Json,
    /// The part `model` of a form. Newer clients send JSON to some of these: the content type tells.
    Form,
    /// The parameter `model` of the query.
    Query,
    /// Nowhere: only `X-Model-ID` or `/model/<name>/` can name it, and the body is not looked at.
    Address,
}

/// When an answer is a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Never.
    Never,
    /// When the body has `"stream": true`.
    Asked,
    /// Unless the body has `"stream": false`.
    UnlessDeclined,
    /// Always, in both directions: a WebSocket.
    Upgraded,
}

/// What ties a request to one engine of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The id of a response that an engine stores: in the path, or `previous_response_id`.
    Response,
    /// ComfyUI's client: `clientId` in the query, or `client_id` in the body.
    ComfyClient,
}

/// Something that the gateway answers from what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Whether the process lives.
    Health,
    /// Whether new requests should come here.
    Readiness,
    /// Which models there are.
    Models,
    /// One model by name.
    Model,
    /// Which models there are, as Ollama lists them.
    OllamaTags,
    /// One model by the name in the body, as Ollama shows it.
    OllamaShow,
    /// Which models are awake, as Ollama lists them.
    OllamaRunning,
    /// Which version of Ollama's API this is.
    OllamaVersion,
}

/// A path of the gateway's own.
#[derive(Debug, PartialEq, Eq)]
pub struct Own {
    /// The methods it is called with, as an `Allow` header lists them.
    pub methods: &'static str,
    /// The path, as in [`Operation::path`]; `{…}` at its end stands for any number of parts.
    pub path: &'static str,
    /// What is answered.
    pub page: Page,
    /// In whose dialect it is refused.
    pub dialect: Dialect,
}

/// The methods of what is only read.
pub const READ: &str = "GET, HEAD";

const fn json(path: &'static str, api: Api) -> Operation {
    Operation {
        methods: "POST",
        path,
        api,
        model_at: ModelAt::Json,
        streams: Streams::Never,
        tied: None,
    }
}

const fn form(path: &'static str, api: Api) -> Operation {
    Operation { model_at: ModelAt::Form, ..json(path, api) }
}

/// Read with a method of its own, and named by header or path only.
const fn read(path: &'static str, api: Api) -> Operation {
    Operation { methods: READ, model_at: ModelAt::Address, ..json(path, api) }
}

impl Operation {
    const fn streaming(self, streams: Streams) -> Self {
        Self { streams, ..self }
    }

    const fn tied(self, tie: Tie) -> Self {
        Self { tied: Some(tie), ..self }
    }

    const fn addressed(self) -> Self {
        Self { model_at: ModelAt::Address, ..self }
    }

    const fn called(self, methods: &'static str) -> Self {
        Self { methods, ..self }
    }

    /// In whose dialect it is refused.
    pub fn dialect(&self) -> Dialect {
        Dialect::of(self.api)
    }

    /// Whether engines are asked here for something new, which they can make as a stream.
    pub(super) fn makes_text(&self) -> bool {
        self.streams == Streams::Asked
    }

    /// Whether it is about what an earlier request had made, whose tokens were counted then.
    pub fn recalls(&self) -> bool {
        self.tied == Some(Tie::Response) && self.model_at == ModelAt::Address
    }

    /// Whether its body is held until its engine begins to answer, however long it is, so that it may be tried again
    /// as long as no engine can have begun. Of the others a long one goes on as it comes, and can be sent once only.
    pub fn is_held_whole(&self) -> bool {
        match self.model_at {
            ModelAt::Json | ModelAt::Query => true,
            ModelAt::Form => false,
            // What ties it may stand in the body.
            ModelAt::Address => self.tied.is_some(),
        }
    }
}

const fn comfy(path: &'static str, methods: &'static str) -> Operation {
    read(path, Api::ComfyUi).called(methods).tied(Tie::ComfyClient)
}

/// Every operation that an engine may be asked for by a listed path.
#[rustfmt::skip]
pub const OPERATIONS: &[Operation] = &[
    json("/v1/chat/completions", Api::Chat).streaming(Streams::Asked),
    json("/v1/completions", Api::Completions).streaming(Streams::Asked),
    json("/v1/embeddings", Api::Embeddings),
    json("/v1/responses", Api::Responses).streaming(Streams::Asked).tied(Tie::Response),
    read("/v1/responses/{id}", Api::StoredResponses).called("GET, HEAD, DELETE").tied(Tie::Response),
    read("/v1/responses/{id}/input_items", Api::StoredResponses).tied(Tie::Response),
    json("/v1/responses/{id}/cancel", Api::StoredResponses).addressed().tied(Tie::Response),
    json("/v1/images/generations", Api::ImageGenerations).streaming(Streams::Asked),
    form("/v1/images/edits", Api::ImageEdits).streaming(Streams::Asked),
    form("/v1/images/variations", Api::ImageVariations),
    json("/v1/audio/speech", Api::AudioSpeech),
    form("/v1/audio/transcriptions", Api::AudioTranscriptions).streaming(Streams::Asked),
    form("/v1/audio/translations", Api::AudioTranslations).streaming(Streams::Asked),
    json("/v1/moderations", Api::Moderations),
    json("/v1/rerank", Api::Rerank),
    json("/v2/rerank", Api::Rerank),
    json("/rerank", Api::Rerank),
    json("/v1/score", Api::Score),
    json("/score", Api::Score),
    Operation { model_at: ModelAt::Query, ..read("/v1/realtime", Api::Realtime).called("GET") }
        .streaming(Streams::Upgraded),

    json("/v1/messages", Api::Messages).streaming(Streams::Asked),
    json("/v1/messages/count_tokens", Api::Messages),

    json("/api/chat", Api::OllamaNative).streaming(Streams::UnlessDeclined),
    json("/api/generate", Api::OllamaNative).streaming(Streams::UnlessDeclined),
    json("/api/embed", Api::OllamaNative),
    json("/api/embeddings", Api::OllamaNative),

    json("/tokenize", Api::Tokenize),
    json("/detokenize", Api::Tokenize),
    json("/infill", Api::LlamaCppNative).streaming(Streams::Asked),
    json("/completion", Api::LlamaCppNative).streaming(Streams::Asked),
    json("/apply-template", Api::LlamaCppNative),

    json("/sdapi/v1/txt2img", Api::SdApi).addressed(),
    json("/sdapi/v1/img2img", Api::SdApi).addressed(),
    read("/sdapi/v1/{rest}", Api::SdApi).called("GET, HEAD, POST"),

    comfy("/prompt", "GET, HEAD, POST"),
    comfy("/queue", "GET, HEAD, POST"),
    comfy("/interrupt", "POST"),
    comfy("/history", "GET, HEAD, POST"),
    comfy("/history/{id}", READ),
    comfy("/view", READ),
    comfy("/view_metadata/{folder}", READ),
    comfy("/upload/image", "POST"),
    comfy("/upload/mask", "POST"),
    comfy("/object_info", READ),
    comfy("/object_info/{class}", READ),
    comfy("/system_stats", READ),
    comfy("/ws", "GET").streaming(Streams::Upgraded),
    comfy("/api/prompt", "GET, HEAD, POST"),
    comfy("/api/queue", "GET, HEAD, POST"),
    comfy("/api/interrupt", "POST"),
    comfy("/api/history", "GET, HEAD, POST"),
    comfy("/api/history/{id}", READ),
    comfy("/api/view", READ),
    comfy("/api/view_metadata/{folder}", READ),
    comfy("/api/upload/image", "POST"),
    comfy("/api/upload/mask", "POST"),
    comfy("/api/object_info", READ),
    comfy("/api/object_info/{class}", READ),
    comfy("/api/system_stats", READ),
    comfy("/api/ws", "GET").streaming(Streams::Upgraded),
];

const fn own(path: &'static str, page: Page) -> Own {
    Own { methods: READ, path, page, dialect: Dialect::OpenAi }
}

const fn ollama(methods: &'static str, path: &'static str, page: Page) -> Own {
    Own { methods, path, page, dialect: Dialect::Ollama }
}

/// Every path that the gateway answers by itself.
pub const OWN: &[Own] = &[
    own("/healthz", Page::Health),
    own("/health", Page::Health),
    own("/readyz", Page::Readiness),
    own("/v1/models", Page::Models),
    own("/v1/models/{name}", Page::Model),
    ollama(READ, "/api/tags", Page::OllamaTags),
    ollama("POST", "/api/show", Page::OllamaShow),
    ollama(READ, "/api/ps", Page::OllamaRunning),
    ollama(READ, "/api/version", Page::OllamaVersion),
];
