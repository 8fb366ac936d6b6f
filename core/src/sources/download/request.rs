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
    /// Whether the token, if there is one, goes along as a bearer. Never send it otherwise.
    pub with_token: bool,
    /// Why it is asked.
    pub purpose: Purpose,
}

/// Why a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To learn which files there are; the body is small and read whole.
    List,
    /// To get the bytes of one file, or the rest of them; the body is streamed.
    File,
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(url.query().map(|_| "…"));
        formatter
            .debug_struct("Request")
            .field("url", &url.as_str())
            .field("headers", &self.headers)
            .field("with_token", &self.with_token)
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

    /// A header that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }
}
