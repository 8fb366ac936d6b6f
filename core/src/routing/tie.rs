//! What ties a request to the one endpoint that has what it is about: a stored response, or the jobs
//! and pictures of one of ComfyUI's clients.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::comfy;
use super::key::{Key as RingKey, Source};
use super::mark::{ClientNumber, Mark};
use crate::ids::ModelId;
use crate::openai::facts::Key;
use crate::openai::{Facts, apis};

/// The longest id by which anything is tied, in bytes: engines and their clients make up much shorter ones.
pub(super) const LONGEST: usize = 256;

/// What a request is about, as far as that ties it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tie {
    /// By what its endpoint may be known, the most certain first: names for [`Pins`](super::Pins).
    pub names: Vec<String>,
    /// How an endpoint says that it has it not; another may.
    pub ask_around: Option<Absence>,
    /// Its place on the ring where nobody is known.
    pub key: Option<RingKey>,
    /// Later requests of the same client come here too, by these names.
    pub leaves: Vec<String>,
    /// Whom the answer tells of pictures: the client's address, and what else it is known by.
    pub told_to: Vec<String>,
    /// Who queues a job and says so: what comes of the job is his, whoever asks for it.
    pub queued_by: Option<String>,
    /// What it asks for, where no other endpoint has that.
    pub only: Option<Only>,
    /// The answer tells its client of pictures, each in a field of this name.
    pub tells: Option<&'static str>,
    /// Whether its client is to be given a mark, to come back with to the same endpoint.
    pub marks: bool,
    /// The answer tells an id, in the field of this name, by which later requests are tied.
    pub told_as: Option<&'static str>,
}

/// How an answer says that its endpoint has not what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// By the status 404.
    NotFound,
    /// By `{}`, or by the status.
    Nothing,
}

/// What the head of an answer says of whether its endpoint has what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has it.
    Here,
    /// It has it not.
    Absent,
    /// That is told by the body.
    Untold,
}

impl Absence {
    /// What an answer with this status says, which has this length if it says one.
    pub fn presence(self, status: u16, length: Option<u64>) -> Presence {
        match (self, status, length) {
            (_, 404, _) | (Self::Nothing, 200, Some(2)) => Presence::Absent,
            (Self::Nothing, 200, None) => Presence::Untold,
            _ => Presence::Here,
        }
    }
}

/// Sees from the body of an answer, piece by piece, whether it is more than `{}`.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyReader {
    seen: usize,
}

impl BodyReader {
    /// Looks at the next piece: whether there is something, as soon as that is seen.
    pub fn look(&mut self, piece: &[u8]) -> bool {
        let before = self.seen;
        let count = piece.iter().filter(|byte| !byte.is_ascii_whitespace()).take(3).count();
        self.seen = (before + count).min(3);
        before < 3 && self.seen == 3
    }
}

/// Something that one endpoint alone has, and by what that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only {
    /// A picture or a job, as its client calls it.
    pub what: String,
    /// Which endpoint it is.
    pub known_by: KnownBy,
}

/// By what it is known who has something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// The mark that its client came back with.
    Mark,
    /// Who took the job, which is remembered in [`Pins`](super::Pins) by this name. Others may be asked whether they did.
    Job(String),
    /// Who told clients at one address of the picture, which is remembered by this name ([`picture`](super::picture)).
    Told(String),
    /// Who told this very client of it, the same way.
    Own(String),
    /// The same, and of what is not remembered the mark: its client was nowhere else.
    Marked(String),
    /// The same of a client that was elsewhere: of what is not remembered, nobody knows.
    Moved(String),
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
    /// The id in its body that ties it: [`client_id`](super::client_id) or [`previous_response`].
    pub told: Option<&'a str>,
    /// Who sends it: whatever tells clients apart that send no id.
    pub client: &'a str,
    /// Whether its path is in the table of APIs.
    pub listed: bool,
    /// The mark that it brings from an answer.
    pub mark: Option<&'a Mark>,
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
            apis::Tie::ComfyClient => comfy::tie(asked),
        }
    }

    /// The name by which later requests know what the answer told as `id`, if it tells anything.
    pub fn name_of(&self, model: &ModelId, id: &str) -> Option<String> {
        self.told_as.filter(|_| id.len() <= LONGEST)?;
        let source = if self.stores() { Source::ResponseId } else { Source::PromptId };
        Some(name(model, source, id))
    }

    /// Its answer gives the client a mark, by which it is known from then on: as `client`.
    pub fn mark(&mut self, model: &ModelId, client: ClientNumber) {
        self.told_to.push(name(model, Source::Mark, &client.to_string()));
    }

    /// Whether the id that the answer tells is a stored response's.
    pub fn stores(&self) -> bool {
        self.told_as == Some("id")
    }

    fn response(asked: &Asked<'_>) -> Self {
        let id = stored_response(asked.path);
        let creates = asked.method == "POST" && id.is_none();
        let told = id.or(asked.told.map(Cow::Borrowed)).filter(|id| id.len() <= LONGEST);
        let name = told.map(|id| asked.name(Source::ResponseId, &id));
        Self {
            ask_around: name.is_some().then_some(Absence::NotFound),
            names: name.into_iter().collect(),
            told_as: creates.then_some("id"),
            ..Self::default()
        }
    }
}

impl Asked<'_> {
    pub(super) fn name(&self, source: Source, id: &str) -> String {
        name(self.model, source, id)
    }
}

fn name(model: &ModelId, source: Source, id: &str) -> String {
    format!("{model} {source} {id}")
}

pub(super) fn path(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// The part of the path that follows `start`, decoded.
pub(super) fn after<'a>(url: &'a str, start: &str) -> Option<Cow<'a, str>> {
    let part = path(url).split_once(start)?.1.split('/').next()?;
    (!part.is_empty()).then(|| percent_decode_str(part).decode_utf8_lossy())
}

/// A parameter of the query, decoded as forms are written.
pub(super) fn parameter<'a>(url: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let query = url.split_once('?')?.1;
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    let named = |key: &str| percent_decode_str(key).eq(name.bytes());
    let value = values.into_iter().find(|(key, _)| named(key))?.1;
    if value.contains('+') {
        let spaced = value.replace('+', " ");
        return Some(percent_decode_str(&spaced).decode_utf8_lossy().into_owned().into());
    }
    Some(percent_decode_str(value).decode_utf8_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{Pins, picture};

    fn response(method: &str, path: &str, body: &str) -> Tie {
        let model = ModelId::new("default", "m");
        let facts = Facts::read(body.as_bytes()).ok();
        let told = facts.and_then(|facts| previous_response(&facts, body.as_bytes()));
        let (told, client) = (told.as_deref(), "10.0.0.9");
        let (listed, mark) = (true, None);
        let asked = Asked { model: &model, method, path, told, client, listed, mark };
        Tie::of(apis::Tie::Response, &asked)
    }

    #[test]
    fn a_stored_response_is_named_in_the_path_or_by_who_goes_on_from_it() {
        for (method, path, body) in [
            ("GET", "/v1/responses/resp_1?include=x", ""),
            ("POST", "/v1/responses/resp_1/cancel", ""),
            ("DELETE", "/v1/responses/resp%5F1", ""),
            ("POST", "/v1/responses", r#"{"model":"m","previous_response_id":"resp_1"}"#),
        ] {
            let tie = response(method, path, body);
            assert_eq!(tie.names, ["default/m response-id resp_1"], "{path}");
            assert_eq!(tie.ask_around, Some(Absence::NotFound), "{path}");
        }
        let long = format!("/v1/responses/{}", "x".repeat(LONGEST + 1));
        assert_eq!(response("GET", &long, ""), Tie::default());
        let first = response("POST", "/v1/responses", r#"{"model":"m","input":"Hi"}"#);
        assert_eq!(first, Tie { told_as: Some("id"), ..Tie::default() });
    }

    #[test]
    fn whatever_ties_is_held_by_pins_however_long_its_parts_are() {
        let model = ModelId::new(&"n".repeat(63), &"m".repeat(253));
        let tie = Tie { told_as: Some("prompt_id"), ..Tie::default() };
        let id = "x".repeat(LONGEST);
        let (job, picture) = (tie.name_of(&model, &id).expect("a name"), picture(&model, &id, &id));
        let mut pins = Pins::new(2);
        for name in [job, picture] {
            pins.pin(&name, ());
            assert_eq!(pins.holder(&name), Some(()), "{} bytes", name.len());
        }
    }
}
