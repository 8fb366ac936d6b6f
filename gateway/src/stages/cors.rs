//! Tells browsers which pages may read an answer. What a browser asks before it sends (a preflight) has no
//! key and reaches no engine; an engine's own word on the matter is replaced by ours.

use flexinfer_core::cors::{EXPOSED, METHODS, REMEMBERED};
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderName, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};
use pingora_core::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::Stop;
use crate::context::{Context, Page};
use crate::parts::Parts;

/// What an engine says of pages, which is not for it to say where the gateway does.
const OF_ENGINES: [HeaderName; 5] = [
    ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_EXPOSE_HEADERS,
];

/// Notes which page asks, and answers what its browser asks first.
pub(crate) fn cors(parts: &Parts, session: &Session, context: &mut Context) -> Result<(), Stop> {
    let origins = &parts.rules.origins;
    if origins.is_empty() {
        return Ok(());
    }
    let head = session.req_header();
    let origin = head.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let allowed = origin.and_then(|origin| origins.allowed(origin));
    context.page = Page::Asked(allowed.and_then(|origin| HeaderValue::from_str(origin).ok()));
    let preflight = head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if head.method == Method::OPTIONS && preflight && origin.is_some() {
        return Err(Stop::Preflight);
    }
    Ok(())
}

/// Says in the fields of an answer who may read it.
pub(crate) fn tell(fields: &mut HeaderMap, context: &Context) {
    let Page::Asked(allowed) = &context.page else { return };
    for name in &OF_ENGINES {
        fields.remove(name);
    }
    fields.append(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = allowed else { return };
    fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    fields.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// What a preflight is told beside that: any header that it asks for may be sent.
pub(crate) fn tell_before(
    head: &mut ResponseHeader,
    session: &Session,
    context: &Context,
) -> Result<()> {
    if !matches!(context.page, Page::Asked(Some(_))) {
        return Ok(());
    }
    head.insert_header(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS))?;
    head.insert_header(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(REMEMBERED))?;
    match session.req_header().headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        Some(wanted) => head.insert_header(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone()),
        None => Ok(()),
    }
}
