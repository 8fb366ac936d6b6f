//! Looks at a request's head: whether it may come in at all, and what it asks for.

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use flexinfer_core::callers::without_key;
use flexinfer_core::fleet::Fleet;
use flexinfer_core::hosts::Hosts;
use flexinfer_core::openai::BodyKind;
use flexinfer_core::openai::apis::{ModelAt, Operation, Page};
use flexinfer_core::openai::paths::{Asked, EngineCall, locate, unlisted};
use flexinfer_core::openai::query;
use flexinfer_core::rejection::Rejection;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pingora_http::RequestHeader;
use pingora_proxy::Session;

use super::spans::Spans;
use super::{Stop, cors};
use crate::context::Context;
use crate::decimal::Backwards;
use crate::lifecycle::Phase;
use crate::parts::Parts;

/// Names a request in answers, logs and engines.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// The same to look it up by.
pub(crate) const REQUEST_ID_NAME: HeaderName = HeaderName::from_static(REQUEST_ID);

/// A longer id is replaced by one of ours.
const LONGEST_REQUEST_ID: usize = 128;

/// Ids made so far, to tell those of the same nanosecond apart.
static MADE: AtomicU16 = AtomicU16::new(0);

/// Names the model where neither path nor body can.
const MODEL_ID: HeaderName = HeaderName::from_static("x-model-id");

/// What decides how a request is read, and by whom.
static DECIDING: [HeaderName; 2] = [CONTENT_TYPE, MODEL_ID];

/// What the head asks an engine for.
pub(crate) struct Call {
    /// The model that header, path or query name, in this order.
    pub(crate) model: Option<String>,
    /// What is asked for, if it is in the table of paths.
    pub(crate) operation: Option<&'static Operation>,
    /// Whether it is asked for by the path in the table.
    pub(crate) listed: bool,
    /// Path and query for the engine.
    pub(crate) path: String,
    /// What was taken off the path: `/model/<name>` as it was received.
    pub(crate) prefix: Option<String>,
    /// How long its body is, where the head says so.
    pub(crate) announced: Option<u64>,
}

impl Call {
    /// Whether the query names the model.
    pub(crate) fn is_named_in_query(&self) -> bool {
        self.operation.is_some_and(|operation| operation.model_at == ModelAt::Query)
    }
}

/// What a request asks for.
pub(crate) enum Request {
    /// Something that the gateway answers, of the model that the path names if it names one.
    Page(Page, String),
    /// Something that an engine answers.
    Engine(Call),
}

impl Request {
    /// Whether anybody may ask.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self, Self::Page(Page::Health | Page::Readiness, _))
    }
}

/// Counts the request in, and refuses what cannot be served whoever sends it.
pub(crate) fn receive(
    parts: &Parts,
    fleet: &Fleet,
    session: &mut Session,
    context: &mut Context,
) -> Result<Request, Stop> {
    let uri = session.req_header().uri.clone();
    let place = locate(uri.path(), |name| fleet.knows(name));
    context.dialect = place.dialect();
    if !place.is_own() {
        context.spans = Spans::begin(&parts.tracer, session.req_header());
    }
    let announced = admit(parts, session, context)?;
    cors::cors(parts, session, context)?;
    let head = session.req_header();
    if head.method == Method::TRACE {
        return Err(method_not_allowed(&head.method).into());
    }
    let call = match place.asked(head.method.as_str())? {
        Asked::Page { page, name } => return Ok(Request::Page(page, name)),
        Asked::Engine(call) => call,
    };
    said_once(&head.headers)?;
    let EngineCall { mut model, path, operation, listed } = call;
    if let Some(header) = head.headers.get(MODEL_ID) {
        model = Some(named(header)?);
    }
    if model.is_none() {
        match operation {
            Some(Operation { model_at: ModelAt::Query, .. }) if listed => {
                model = query::model(uri.query().unwrap_or_default())?;
            }
            Some(_) if listed => {}
            _ => return Err(unlisted(head.method.as_str(), path).into()),
        }
    }
    if let Some(operation) = operation {
        readable(&head.headers)?;
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        BodyKind::expect(operation.model_at, content_type)?;
    }
    let taken_off = uri.path().strip_suffix(path).unwrap_or(uri.path());
    let prefix = (!taken_off.is_empty()).then(|| taken_off.to_owned());
    let path = engine_url(parts, path, uri.query());
    Ok(Request::Engine(Call { model, operation, listed, path, prefix, announced }))
}

/// Refuses a method that no engine shall see: TRACE answers with the keys it was sent, CONNECT opens a tunnel.
pub(crate) fn method_not_allowed(method: &Method) -> Rejection {
    let allow = "GET, HEAD, POST, PUT, PATCH, DELETE";
    Rejection::MethodNotAllowed { method: method.to_string(), allow }
}

/// Path and query for the engine; where callers have keys, without the one that a query may carry.
fn engine_url(parts: &Parts, path: &str, query: Option<&str>) -> String {
    let Some(query) = query else { return path.to_owned() };
    let without = parts.rules.keys.as_ref().and_then(|_| without_key(query));
    format!("{path}?{}", without.as_deref().unwrap_or(query))
}

/// Refuses a head that says twice what decides: one reader takes the first, another the last.
fn said_once(headers: &HeaderMap) -> Result<(), Rejection> {
    // Hardly any head says anything twice.
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    let repeated = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
    match DECIDING.iter().find(repeated) {
        None => Ok(()),
        Some(name) => Err(Rejection::RepeatedHeader { name: name.as_str() }),
    }
}

/// Refuses a compressed body where its fields decide something: what is understood here must be what
/// the engine understands.
pub(crate) fn readable(headers: &HeaderMap) -> Result<(), Rejection> {
    let plain = |coding: &&HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    match headers.get_all(CONTENT_ENCODING).iter().find(|coding| !plain(coding)) {
        None => Ok(()),
        Some(coding) => {
            let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
            Err(Rejection::CompressedBody { coding })
        }
    }
}

fn named(header: &HeaderValue) -> Result<String, Rejection> {
    match std::str::from_utf8(header.as_bytes()).map(str::trim) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(Rejection::InvalidField { field: "X-Model-ID", expected: "a model's name" }),
    }
}

/// Whether it may come in; if so, how long its body is, where the head says so.
fn admit(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
) -> Result<Option<u64>, Rejection> {
    context.in_flight = Some(parts.lifecycle.enter());
    let head = session.req_header();
    context.request_id = Some(request_id(&head.headers));
    if let Some(hosts) = &parts.rules.hosts {
        named_as_allowed(hosts, head)?;
    }
    if parts.lifecycle.phase() == Phase::Closed {
        return Err(Rejection::ShuttingDown);
    }
    if other_upgrade(&head.headers) {
        let head = session.req_header_mut();
        head.remove_header(&UPGRADE);
        head.remove_header(&CONNECTION);
    }
    let head = session.req_header();
    certain_length(&head.headers, || session.downstream_session.to_h1_raw())?;
    if let Some(expectation) = head.headers.get(EXPECT)
        && !expectation.as_bytes().eq_ignore_ascii_case(b"100-continue")
    {
        let expectation = String::from_utf8_lossy(expectation.as_bytes()).into_owned();
        return Err(Rejection::UnknownExpectation { expectation });
    }
    let announced = announced_length(&head.headers);
    if announced.is_some_and(|length| length > parts.limits.max_body) {
        return Err(Rejection::BodyTooLarge { limit: parts.limits.max_body });
    }
    // A gateway that is about to stop keeps no connection.
    if parts.lifecycle.phase() != Phase::Serving {
        session.set_keepalive(None);
    }
    // The body has limits of its own; a client that takes none of its answer must not hold a slot for ever.
    session.set_read_timeout(None);
    session.set_write_timeout(Some(parts.limits.silence));
    Ok(announced)
}

/// Refuses what is asked for by a name that is none of the gateway's: so does a page of a site whose name was
/// made to lead here. Whoever names no host is no browser.
fn named_as_allowed(hosts: &Hosts, head: &RequestHeader) -> Result<(), Rejection> {
    let named = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let all = head.headers.get_all(HOST).iter().map(HeaderValue::as_bytes).chain(named);
    for host in all {
        if !std::str::from_utf8(host).is_ok_and(|host| hosts.allows(host)) {
            let host = String::from_utf8_lossy(host).into_owned();
            return Err(Rejection::HostNotAllowed { host });
        }
    }
    Ok(())
}

/// Whether the client wants to go on in a protocol that nobody could follow here. An engine that agreed would
/// be reached past every rule (`Upgrade: h2c` carries any number of requests); to leave such a wish out is
/// allowed.
fn other_upgrade(headers: &HeaderMap) -> bool {
    let Some(protocol) = headers.get(UPGRADE) else { return false };
    headers.get_all(UPGRADE).iter().count() > 1
        || !protocol.as_bytes().eq_ignore_ascii_case(b"websocket")
}

/// Refuses what two readers could cut at two places (request smuggling): Pingora accepts both.
fn certain_length(
    headers: &HeaderMap,
    as_received: impl FnOnce() -> Bytes,
) -> Result<(), Rejection> {
    let uncertain = |problem: &str| Err(Rejection::InvalidFraming { problem: problem.to_owned() });
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return uncertain("the only Transfer-Encoding that is understood is chunked");
    }
    // Pingora takes the length out of such a head before anybody sees it.
    if has_length(&as_received()) {
        return uncertain("it has both Content-Length and Transfer-Encoding");
    }
    Ok(())
}

fn has_length(head: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length";
    head.split(|byte| *byte == b'\n').any(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(NAME)
    })
}

/// The length that the head announces, if it does.
pub(crate) fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// The client's own id where it can be repeated safely, else `<unix nanoseconds>-<4 hex digits>`.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    if let Some(id) = headers.get(REQUEST_ID_NAME)
        && (1..=LONGEST_REQUEST_ID).contains(&id.len())
        && id.as_bytes().iter().all(u8::is_ascii_graphic)
    {
        return id.clone();
    }
    new_request_id()
}

/// An id that no other request has.
pub(crate) fn new_request_id() -> HeaderValue {
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut id = Backwards::new();
    id.four_digits(MADE.fetch_add(1, Ordering::Relaxed));
    id.byte(b'-');
    id.number(u64::try_from(nanoseconds).unwrap_or_default());
    HeaderValue::from_bytes(id.text()).unwrap_or_else(|_| HeaderValue::from_static("0-0000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_length_that_two_readers_could_disagree_on_is_refused() {
        let with = |coding: &'static str, head: &'static str| {
            let headers = headers(&[(TRANSFER_ENCODING, coding)]);
            certain_length(&headers, || Bytes::from_static(head.as_bytes()))
        };
        assert!(with("identity, chunked", "").is_err());
        assert!(with("gzip", "").is_err());
        assert!(with("chunked", "POST / HTTP/1.1\r\nCONTENT-length: 3\r\n").is_err());
        assert!(with("Chunked", "POST /content-length: HTTP/1.1\r\nX: content-length\r\n").is_ok());
        assert!(certain_length(&HeaderMap::new(), Bytes::new).is_ok());
    }

    #[test]
    fn a_request_keeps_its_id_unless_it_cannot_be_repeated() {
        assert_eq!(request_id(&headers(&[(REQUEST_ID_NAME, "abc-1")])), "abc-1");
        for bad in ["", "two words", "tab\tbed"] {
            let made = request_id(&headers(&[(REQUEST_ID_NAME, bad)]));
            assert_ne!(made, bad);
            assert!(made.to_str().is_ok_and(|id| id.contains('-')), "{made:?}");
        }
    }
}
