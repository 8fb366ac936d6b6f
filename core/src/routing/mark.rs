//! What a client brings back with all that it asks, as cookies are: the endpoint that it came to, and who it is among the
//! clients there. It says itself all that has to be known of it, so that every gateway can tell.

use std::fmt;

use super::key::{Key as RingKey, Source};
use crate::ids::EndpointId;

/// Digits of each of its numbers.
const DIGITS: usize = 16;

/// What follows the numbers once its client has come to another endpoint.
const MOVED: &str = "moved";

/// Tells a client from all others: a number that nobody else was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientNumber(pub u64);

impl fmt::Display for ClientNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// A client's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The endpoint that its client is at, by a number that says nothing of what that is called.
    at: u64,
    client: ClientNumber,
    /// Whether the client was at another endpoint before.
    moved: bool,
}

impl Mark {
    /// That of `client`, which has come to `endpoint` and was at no other before.
    pub fn new(endpoint: &EndpointId, client: ClientNumber) -> Self {
        Self { at: number_of(endpoint), client, moved: false }
    }

    /// The mark that `text` is, if it is one.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let mut number = || {
            let number = parts.next().filter(|number| number.len() == DIGITS)?;
            let digits = number.bytes().all(|byte| byte.is_ascii_hexdigit());
            u64::from_str_radix(number, 16).ok().filter(|_| digits)
        };
        let (at, client) = (number()?, ClientNumber(number()?));
        let moved = match parts.next() {
            None => false,
            Some(MOVED) if parts.next().is_none() => true,
            Some(_) => return None,
        };
        Some(Self { at, client, moved })
    }

    /// The same client's once it has come to `endpoint`; `None` where that is where it was.
    pub fn moved_to(&self, endpoint: &EndpointId) -> Option<Self> {
        let at = number_of(endpoint);
        (at != self.at).then_some(Self { at, moved: true, ..*self })
    }

    /// Whether its client is at `endpoint`.
    pub fn is_at(&self, endpoint: &EndpointId) -> bool {
        number_of(endpoint) == self.at
    }

    /// Whether its client was at another endpoint before.
    pub fn has_moved(&self) -> bool {
        self.moved
    }

    /// Which client it is.
    pub fn client(&self) -> ClientNumber {
        self.client
    }

    /// Where its client goes if its endpoint is gone.
    pub(super) fn key(&self) -> RingKey {
        RingKey::new(Source::Mark, &format!("{:016x}", self.at))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}.{}", self.at, self.client)?;
        if self.moved { write!(formatter, ".{MOVED}") } else { Ok(()) }
    }
}

fn number_of(endpoint: &EndpointId) -> u64 {
    RingKey::new(Source::Mark, &endpoint.0).fingerprint()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_where_its_client_is_and_whether_it_was_elsewhere() {
        let [one, other] = ["painter-x2b", "painter-9qk"].map(|name| EndpointId(name.into()));
        let first = Mark::new(&one, ClientNumber(7));
        assert_eq!(Mark::read(&first.to_string()), Some(first));
        assert!(first.is_at(&one) && !first.is_at(&other) && !first.has_moved());
        assert_eq!(first.moved_to(&one), None);
        let second = first.moved_to(&other).expect("another");
        assert_eq!(Mark::read(&second.to_string()), Some(second));
        assert!(second.is_at(&other) && second.has_moved());
        assert_eq!(second.client(), first.client());
        let back = second.moved_to(&one).expect("another");
        assert!(back.is_at(&one) && back.has_moved(), "it was elsewhere once");
    }

    #[test]
    fn what_is_no_mark_is_none() {
        let number = "0123456789abcdef";
        for text in [
            String::new(),
            number.to_owned(),
            format!("{number}."),
            format!("{number}.{number}."),
            format!("{number}.{number}.been"),
            format!("{number}.{number}.moved.moved"),
            format!("{number}.{number}0"),
            format!("{number}.0123456789abcdeg"),
        ] {
            assert_eq!(Mark::read(&text), None, "{text}");
        }
    }
}
