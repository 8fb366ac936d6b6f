//! Requests that are refused before any stage sees them. Pingora does so with a head that it cannot read
//! and with CONNECT; its refusals say nothing, and these say why, in the shape that clients understand.

use flexinfer_core::openai::{CONTENT_TYPE, Dialect, error_body};
use flexinfer_core::rejection::Rejection;
use http::Method;

use crate::stages::receive::{method_not_allowed, new_request_id};

/// What is written in place of `head`, if that is one of Pingora's own refusals.
pub(super) fn in_place_of(head: &[u8]) -> Option<Vec<u8>> {
    let (rejection, status) = if head.starts_with(b"HTTP/1.1 400 ") {
        (Rejection::InvalidHead, "400 Bad Request")
    } else if head.starts_with(b"HTTP/1.1 405 ") {
        (method_not_allowed(&Method::CONNECT), "405 Method Not Allowed")
    } else {
        return None;
    };
    is_pingoras(head).then(|| written(&rejection, status))
}

/// What a client is told that speaks plain HTTP where TLS is spoken.
pub(super) fn plain_http() -> Vec<u8> {
    written(&Rejection::PlainHttp, "400 Bad Request")
}

/// An engine's refusal, or one of ours, names no such server.
fn is_pingoras(head: &[u8]) -> bool {
    let head = head.to_ascii_lowercase();
    let has =
        |line: &[u8]| head.split(|byte| *byte == b'\n').any(|found| found.trim_ascii() == line);
    has(b"server: pingora") && has(b"content-length: 0")
}

fn written(rejection: &Rejection, status: &str) -> Vec<u8> {
    let id = new_request_id();
    let id = id.to_str().unwrap_or_default();
    let body = error_body(Dialect::default(), rejection, Some(id));
    let code = rejection.code();
    let allow = rejection.allow().map(|allow| format!("Allow: {allow}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n{allow}\
         X-Flexinfer-Error-Code: {code}\r\nCache-Control: no-store\r\nX-Request-ID: {id}\r\n\
         Connection: close\r\n\r\n",
        body.len(),
    );
    [head.as_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pingoras_own_refusals_are_replaced() {
        let own =
            "HTTP/1.1 400 Bad Request\r\nServer: Pingora\r\nDate: x\r\nContent-Length: 0\r\n\r\n";
        let ours = String::from_utf8(in_place_of(own.as_bytes()).unwrap()).unwrap();
        assert!(ours.starts_with("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"));
        assert!(ours.ends_with('}') && ours.contains("invalid_head"), "{ours}");
        let connect = own.replace("400", "405");
        assert!(in_place_of(connect.as_bytes()).is_some());
        for other in [
            own.replace("400", "502"),
            own.replace("Pingora", "uvicorn"),
            own.replace("Length: 0", "Length: 7"),
        ] {
            assert_eq!(in_place_of(other.as_bytes()), None, "{other}");
        }
    }
}
