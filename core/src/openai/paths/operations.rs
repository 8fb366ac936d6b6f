//! The table of what engines are asked for. A new API is a row here and a name in the backends that
//! serve it.

use crate::backends::Api;
use crate::rejection::Rejection;

/// One method and path of an engine's API.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The only method it is called with.
    pub method: &'static str,
    /// The path, to the letter.
    pub path: &'static str,
    /// The family that an engine must serve.
    pub api: Api,
    /// Where a request names its model.
    pub model_at: ModelAt,
}

/// Where the body of a request names its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelAt {
    /// The field `model` of a JSON object.
    Json,
    /// The part `model` of a form. Newer clients send JSON to some of these: the content type tells.
    Form,
}

const fn post(path: &'static str, api: Api, model_at: ModelAt) -> Operation {
    Operation { method: "POST", path, api, model_at }
}

/// Every operation that a model's engine may be asked for by a listed path.
pub const OPERATIONS: &[Operation] = &[
    post("/v1/chat/completions", Api::Chat, ModelAt::Json),
    post("/v1/completions", Api::Completions, ModelAt::Json),
    post("/v1/embeddings", Api::Embeddings, ModelAt::Json),
    post("/v1/responses", Api::Responses, ModelAt::Json),
    post("/v1/images/generations", Api::ImageGenerations, ModelAt::Json),
    post("/v1/images/edits", Api::ImageEdits, ModelAt::Form),
    post("/v1/images/variations", Api::ImageVariations, ModelAt::Form),
    post("/v1/audio/speech", Api::AudioSpeech, ModelAt::Json),
    post("/v1/audio/transcriptions", Api::AudioTranscriptions, ModelAt::Form),
    post("/v1/audio/translations", Api::AudioTranslations, ModelAt::Form),
    post("/v1/moderations", Api::Moderations, ModelAt::Json),
    post("/v1/rerank", Api::Rerank, ModelAt::Json),
    post("/v2/rerank", Api::Rerank, ModelAt::Json),
    post("/rerank", Api::Rerank, ModelAt::Json),
    post("/v1/score", Api::Score, ModelAt::Json),
    post("/score", Api::Score, ModelAt::Json),
    post("/v1/messages", Api::Messages, ModelAt::Json),
    post("/v1/messages/count_tokens", Api::Messages, ModelAt::Json),
    post("/tokenize", Api::Tokenize, ModelAt::Json),
    post("/detokenize", Api::Tokenize, ModelAt::Json),
];

/// How alike two paths must be for one to be suggested for the other, from 0 to 1.
const ALIKE: f64 = 0.7;
/// A longer path is not compared with others: nobody means it.
const LONGEST_COMPARED: usize = 100;

/// The operation at `path`, if it is in the table; a wrong method is refused.
pub(super) fn at(method: &str, path: &str) -> Result<Option<&'static Operation>, Rejection> {
    match OPERATIONS.iter().find(|operation| operation.path == path) {
        Some(operation) if operation.method != method => {
            Err(Rejection::MethodNotAllowed { method: method.to_owned(), allow: operation.method })
        }
        found => Ok(found),
    }
}

/// The path that whoever asked for `path` may have meant.
pub(super) fn nearest(path: &str) -> Option<&'static str> {
    if path.len() > LONGEST_COMPARED {
        return None;
    }
    let own = ["/v1/models", "/healthz", "/readyz"];
    let known = OPERATIONS.iter().map(|operation| operation.path).chain(own);
    let alike = known.map(|known| (strsim::normalized_levenshtein(path, known), known));
    let best = alike.filter(|(likeness, _)| *likeness >= ALIKE);
    best.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}
