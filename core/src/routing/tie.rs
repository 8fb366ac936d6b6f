//! What ties a request to the one endpoint that has what it is about: a stored response, or the jobs
//! and pictures of one of ComfyUI's clients.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::key::{Key as RingKey, Source};
use crate::ids::ModelId;
use crate::openai::facts::Key;
use crate::openai::{Facts, apis};

/// As much of an answer as is looked through for an id.
const WHERE_IDS_STAND: usize = 8 * 1024;

/// What a request is about, as far as that ties it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tie {
    /// By what its endpoint may be known, the most certain first: names for [`Pins`](super::Pins).
    pub names: Vec<String>,
    /// An endpoint that answers 404 has it not, and another may.
    pub ask_around: bool,
    /// Its place on the ring where nobody is known.
    pub key: Option<RingKey>,
    /// A later request without a client's id comes here too, by this name.
    pub leaves: Option<String>,
    /// The answer tells an id, in the field of this name, by which later requests are tied.
    pub told_as: Option<&'static str>,
}

/// What is known of a request that may be tied.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its model.
    pub model: &'a ModelId,
    /// Its method.
    pub method: &'a str,
    /// Path and query for the engine.
    pub path: &'a str,
    /// The id in its body that ties it: [`client_id`] or [`previous_response`].
    pub told: Option<&'a str>,
    /// Who sends it: whatever tells clients apart that send no id.
    pub client: &'a str,
}

/// The client that a job of ComfyUI's names. Goes through all of `body`; one that is something else is for the engine
/// to refuse.
pub fn client_id(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Job {
        client_id: Option<String>,
    }
    serde_json::from_slice::<Job>(body).ok()?.client_id
}

/// The response that `body`, which `facts` were read from, goes on from.
pub fn previous_response(facts: &Facts, body: &[u8]) -> Option<String> {
    serde_json::from_str(facts.text(Key::PreviousResponseId, body)?).ok()
}

/// The stored response that `path` is about.
pub fn stored_response(path: &str) -> Option<Cow<'_, str>> {
    after(path, "/responses/")
}

impl Tie {
    /// What ties a request to an API that ties by `kind`.
    pub fn of(kind: apis::Tie, asked: &Asked<'_>) -> Self {
        match kind {
            apis::Tie::Response => Self::response(asked),
            apis::Tie::ComfyClient => Self::comfy(asked),
        }
    }

    /// The name by which later requests know what the answer told as `id`, if it tells anything.
    pub fn name_of(&self, model: &ModelId, id: &str) -> Option<String> {
        self.told_as?;
        let source = if self.stores() { Source::ResponseId } else { Source::PromptId };
        Some(name(model, source, id))
    }

    /// Whether the id that the answer tells is a stored response's.
    pub fn stores(&self) -> bool {
        self.told_as == Some("id")
    }

    fn response(asked: &Asked<'_>) -> Self {
        let id = stored_response(asked.path);
        let creates = asked.method == "POST" && id.is_none();
        let name =
            id.or(asked.told.map(Cow::Borrowed)).map(|id| asked.name(Source::ResponseId, &id));
        Self {
            ask_around: name.is_some(),
            names: name.into_iter().collect(),
            told_as: creates.then_some("id"),
            ..Self::default()
        }
    }

    /// A client that says who it is has one endpoint, by the ring. One that does not comes back to where
    /// it was, or at least always to the same.
    fn comfy(asked: &Asked<'_>) -> Self {
        let told = parameter(asked.path, "clientId").or(asked.told.map(Cow::Borrowed));
        let told = told.filter(|id| !id.is_empty());
        let client = asked.name(Source::Client, asked.client);
        let prompt = after(asked.path, "/history/").map(|id| asked.name(Source::PromptId, &id));
        let names = match &told {
            Some(_) => Vec::new(),
            None => prompt.into_iter().chain([client.clone()]).collect(),
        };
        let creates = asked.method == "POST" && path(asked.path).ends_with("/prompt");
        Self {
            names,
            ask_around: false,
            key: Some(match &told {
                Some(id) => RingKey::new(Source::ClientId, id),
                None => RingKey::new(Source::Client, asked.client),
            }),
            leaves: told.map(|_| client),
            told_as: creates.then_some("prompt_id"),
        }
    }
}

impl Asked<'_> {
    fn name(&self, source: Source, id: &str) -> String {
        name(self.model, source, id)
    }
}

fn name(model: &ModelId, source: Source, id: &str) -> String {
    format!("{model} {source} {id}")
}

fn path(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// The part of the path that follows `start`, decoded.
fn after<'a>(url: &'a str, start: &str) -> Option<Cow<'a, str>> {
    let part = path(url).split_once(start)?.1.split('/').next()?;
    (!part.is_empty()).then(|| percent_decode_str(part).decode_utf8_lossy())
}

/// A parameter of the query, decoded.
fn parameter<'a>(url: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let query = url.split_once('?')?.1;
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = values.into_iter().find(|(key, _)| *key == name)?.1;
    Some(percent_decode_str(value).decode_utf8_lossy())
}

/// Finds in an answer, piece by piece, the first string that a field of one name has.
#[derive(Clone, Debug)]
pub struct IdReader {
    field: &'static str,
    /// The beginning of the answer, while the id may still be in it.
    seen: Option<Vec<u8>>,
}

impl IdReader {
    /// Looks for `field`.
    pub fn new(field: &'static str) -> Self {
        Self { field, seen: Some(Vec::new()) }
    }

    /// Looks at the next piece; the id, once.
    pub fn look(&mut self, piece: &[u8]) -> Option<String> {
        let seen = self.seen.as_mut()?;
        seen.extend(piece.iter().take(WHERE_IDS_STAND.saturating_sub(seen.len())));
        let full = seen.len() >= WHERE_IDS_STAND;
        let found = first_string(seen, self.field);
        if full || found.is_some() {
            self.seen = None;
        }
        found
    }
}

/// The first whole string that is the value of `field`; ids need no escapes.
fn first_string(json: &[u8], field: &str) -> Option<String> {
    let quoted = format!("\"{field}\"");
    memchr::memmem::find_iter(json, quoted.as_bytes()).find_map(|at| {
        let rest = json.get(at + quoted.len()..)?.trim_ascii_start();
        let value = rest.strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', value)?;
        let id = std::str::from_utf8(value.get(..end)?).ok()?;
        (!id.is_empty() && !id.contains('\\')).then(|| id.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tie(kind: apis::Tie, method: &str, path: &str, body: &str) -> Tie {
        let model = ModelId::new("default", "m");
        let told = match kind {
            apis::Tie::ComfyClient => client_id(body.as_bytes()),
            apis::Tie::Response => Facts::read(body.as_bytes())
                .ok()
                .and_then(|facts| previous_response(&facts, body.as_bytes())),
        };
        let (told, client) = (told.as_deref(), "10.0.0.9");
        Tie::of(kind, &Asked { model: &model, method, path, told, client })
    }

    #[test]
    fn a_stored_response_is_named_in_the_path_or_by_who_goes_on_from_it() {
        let response = |method, path, body| tie(apis::Tie::Response, method, path, body);
        for (method, path, body) in [
            ("GET", "/v1/responses/resp_1?include=x", ""),
            ("POST", "/v1/responses/resp_1/cancel", ""),
            ("DELETE", "/v1/responses/resp%5F1", ""),
            ("POST", "/v1/responses", r#"{"model":"m","previous_response_id":"resp_1"}"#),
        ] {
            let tie = response(method, path, body);
            assert_eq!(tie.names, ["default/m response-id resp_1"], "{path}");
            assert!(tie.ask_around, "{path}");
        }
        let first = response("POST", "/v1/responses", r#"{"model":"m","input":"Hi"}"#);
        assert_eq!(first, Tie { told_as: Some("id"), ..Tie::default() });
    }

    #[test]
    fn http_22_all_that_a_client_of_comfyui_asks_for_meets_one_endpoint() {
        let comfy = |method, path, body| tie(apis::Tie::ComfyClient, method, path, body);
        let socket = comfy("GET", "/ws?clientId=c1", "");
        let prompt = comfy("POST", "/prompt", r#"{"prompt":{},"client_id":"c1"}"#);
        assert_eq!(socket.key, Some(RingKey::new(Source::ClientId, "c1")));
        assert_eq!(socket.key, prompt.key);
        assert!(socket.names.is_empty() && prompt.names.is_empty());
        assert_eq!(prompt.told_as, Some("prompt_id"));
        let came_from = prompt.leaves.expect("it leaves a trace");
        let history = comfy("GET", "/api/history/p1", "");
        assert_eq!(history.names, ["default/m prompt-id p1".to_owned(), came_from.clone()]);
        let view = comfy("GET", "/view?filename=a.png", "");
        assert_eq!(view.names, [came_from]);
        assert!(view.key.is_some_and(|key| key.source().binds()));
    }

    #[test]
    fn ids_are_found_however_the_answer_is_cut() {
        let answer = br#"event: response.created
data: {"type":"response.created","response":{"object":"response", "id" : "resp_1","item_id":"x"}}"#;
        for size in [1, 7, 1000] {
            let mut reader = IdReader::new("id");
            let found: Vec<_> =
                answer.chunks(size).filter_map(|piece| reader.look(piece)).collect();
            assert_eq!(found, ["resp_1"], "in pieces of {size}");
        }
        assert_eq!(
            IdReader::new("prompt_id").look(br#"{"prompt_id": "p1", "number": 2}"#).as_deref(),
            Some("p1")
        );
        let mut reader = IdReader::new("id");
        assert_eq!(reader.look(&[b' '; 2 * WHERE_IDS_STAND]), None);
        assert_eq!(reader.look(br#"{"id":"late"}"#), None, "only the beginning is looked through");
    }
}
