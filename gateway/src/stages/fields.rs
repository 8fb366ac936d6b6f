//! Changes the fields of a head. Pingora keeps beside each name how its sender spelled it, reads every name that is
//! put in anew and looks it up twice, which would cost more than all else that is done to an answer. Here
//! names are spelled as HTTP/2 has them, but for the few that Pingora writes with capitals.

use std::mem;

use http::{HeaderMap, Request, StatusCode, request, response};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

/// Lets `change` have the fields of a request's `head`. Its target stays as it is on the wire, also where it is more
/// than the path that its URI has.
pub(crate) fn change_request(
    head: &mut RequestHeader,
    change: impl FnOnce(&mut HeaderMap),
) -> Result<()> {
    let usual = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let unusual = (head.raw_path() != usual.as_bytes()).then(|| head.raw_path().to_vec());
    let empty = RequestHeader::from(Request::new(()).into_parts().0);
    let mut parts = request::Parts::from(mem::replace(head, empty));
    change(&mut parts.headers);
    *head = RequestHeader::from(parts);
    match unusual {
        Some(target) => head.set_raw_path(&target),
        None => Ok(()),
    }
}

/// Lets `change` have the fields of an answer's `head`.
pub(crate) fn change(head: &mut ResponseHeader, change: impl FnOnce(&mut HeaderMap)) -> Result<()> {
    let usual = head.status.canonical_reason();
    let unusual = head.get_reason_phrase().filter(|reason| Some(*reason) != usual);
    let unusual = unusual.map(str::to_owned);
    let empty = ResponseHeader::build_no_case(StatusCode::OK, Some(0))?;
    let mut parts = response::Parts::from(mem::replace(head, empty));
    change(&mut parts.headers);
    *head = ResponseHeader::from(parts);
    match unusual {
        Some(reason) => head.set_reason_phrase(Some(&reason)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{CONTENT_LENGTH, HeaderName};

    use super::*;

    #[test]
    fn a_request_keeps_its_target_and_its_fields() {
        for target in ["/v1/chat?x=%20", "http://host/v1/models", "*", "/"] {
            let mut head = RequestHeader::build("POST", target.as_bytes(), None).expect("a head");
            head.append_header("X-Client", "one").expect("a field");
            let ours = HeaderName::from_static("x-ours");
            change_request(&mut head, |fields| {
                fields.insert(ours, HeaderValue::from_static("two"));
            })
            .expect("a changed head");
            assert_eq!(head.raw_path(), target.as_bytes());
            assert_eq!(head.method, "POST");
            let mut wire = Vec::new();
            head.header_to_h1_wire(&mut wire);
            assert_eq!(wire, b"x-client: one\r\nx-ours: two\r\n");
        }
    }

    #[test]
    fn all_that_is_not_changed_stays_but_for_the_spelling_of_names() {
        let mut head = ResponseHeader::build(299, None).expect("a head");
        head.set_reason_phrase(Some("Quite Fine")).expect("a reason");
        for (name, value) in [("X-Engine", "one"), ("x-engine", "two"), ("CONTENT-length", "5")] {
            head.append_header(name, value).expect("a field");
        }
        let ours = HeaderName::from_static("x-ours");
        change(&mut head, |fields| {
            fields.insert(ours, HeaderValue::from_static("three"));
        })
        .expect("a changed head");
        assert_eq!(head.status, 299);
        assert_eq!(head.get_reason_phrase(), Some("Quite Fine"));
        let mut wire = Vec::new();
        head.header_to_h1_wire(&mut wire);
        let wire = String::from_utf8(wire).expect("text");
        assert_eq!(
            wire,
            "x-engine: one\r\nx-engine: two\r\nContent-Length: 5\r\nx-ours: three\r\n"
        );
        assert!(head.headers.contains_key(CONTENT_LENGTH));
    }
}
