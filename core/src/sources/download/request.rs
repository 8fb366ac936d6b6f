//! What a conversation asks for, and the part of an answer that it looks at.

use std::fmt;

use url::Url;

/// One GET to send. Redirects must not be followed by the sender: the conversation does that.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Where to. Signed URLs are secrets, so `Debug` leaves the query out.
    pub url: Url,
    /// Headers beside the usual ones, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// What goes along that opens doors. Never send anything else of that kind.
    pub authorization: Authorization,
    /// Why it is asked.
    pub purpose: Purpose,
}

/// What goes along with a request so that it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// Nothing.
    Nothing,
    /// The hub's token, if there is one, as a bearer.
    HubToken,
    /// The login for the source's registry, if there is one.
    Login,
    /// This, as a bearer.
    Session(Session),
}

/// A token that a registry has given for a while. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Session(String);

impl Session {
    pub(crate) fn new(token: String) -> Self {
        Self(token)
    }

    /// The token itself, which can stand in a header.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Session(…)")
    }
}

/// Why a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To learn which files there are, or to be let in; the body is small and read whole.
    List,
    /// To get the bytes of one file, or the rest of them; the body is streamed.
    File,
}

impl Request {
    /// A request for a registry's token, at the service that the registry has named.
    pub(super) fn for_token(service: &Url) -> Self {
        Self {
            url: service.clone(),
            headers: vec![("accept", "application/json".to_owned())],
            authorization: Authorization::Login,
            purpose: Purpose::List,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(url.query().map(|_| "…"));
        formatter
            .debug_struct("Request")
            .field("url", &url.as_str())
            .field("headers", &self.headers)
            .field("authorization", &self.authorization)
            .field("purpose", &self.purpose)
            .finish()
    }
}

/// The status and headers of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The headers; names in any case.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The first value of the header `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// Every value of the header `name`.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// A header that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }
}
