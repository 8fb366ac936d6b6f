//! Which pages in browsers may read answers (CORS). A browser asks before it sends, without a key, and
//! shows a page nothing of an answer that does not name its origin.

use std::fmt;
use std::str::FromStr;

use crate::listed::listed;

/// What a page may read of an answer beside its body.
pub const EXPOSED: &str = "x-request-id, retry-after, x-flexinfer-error-code, x-flexinfer-maxtokens-clamped, \
                           x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
                           x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens";

/// What a page may ask with.
pub const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";

/// For how long a browser need not ask again, in seconds.
pub const REMEMBERED: u32 = 600;

/// The origins whose pages may read answers; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Vec<Allowed>);

/// One origin, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Allowed {
    Any,
    Exactly(String),
    /// At any port of this scheme and host.
    AtAnyPort(String),
}

/// Why a text names no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no origin; write scheme, host and port like https://chat.example.com or http://localhost:*, or * for every page"
)]
pub struct NoOrigin(String);

impl Origins {
    /// Whether no page may read anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What an answer to a page of `origin` names as allowed; `None` where it may not read it.
    pub fn allowed<'o>(&self, origin: &'o str) -> Option<&'o str> {
        let allows = |allowed: &Allowed| match allowed {
            Allowed::Any => Some("*"),
            Allowed::Exactly(known) => known.eq_ignore_ascii_case(origin).then_some(origin),
            Allowed::AtAnyPort(start) => at_a_port(origin, start).then_some(origin),
        };
        self.0.iter().find_map(allows)
    }
}

/// Whether `origin` is `start` with a port, or without one.
fn at_a_port(origin: &str, start: &str) -> bool {
    let (Some(begin), Some(rest)) = (origin.get(..start.len()), origin.get(start.len()..)) else {
        return false;
    };
    let port = || rest.strip_prefix(':').filter(|port| !port.is_empty());
    let is_port =
        rest.is_empty() || port().is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    begin.eq_ignore_ascii_case(start) && is_port
}

impl FromStr for Origins {
    type Err = NoOrigin;

    /// Origins with commas between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        listed(text, allowed).map(Self)
    }
}

fn allowed(text: &str) -> Result<Allowed, NoOrigin> {
    if text == "*" {
        return Ok(Allowed::Any);
    }
    let wrong = || NoOrigin(text.to_owned());
    let (start, any_port) = match text.strip_suffix(":*") {
        Some(start) => (start, true),
        None => (text, false),
    };
    let (scheme, host) = start.split_once("://").ok_or_else(wrong)?;
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"/?#@*,".contains(&byte);
    if scheme.is_empty() || host.is_empty() || !start.replacen("://", "", 1).bytes().all(fits) {
        return Err(wrong());
    }
    let start = start.to_owned();
    Ok(if any_port { Allowed::AtAnyPort(start) } else { Allowed::Exactly(start) })
}

impl fmt::Display for Origins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, allowed) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match allowed {
                Allowed::Any => write!(formatter, "{comma}*")?,
                Allowed::Exactly(origin) => write!(formatter, "{comma}{origin}")?,
                Allowed::AtAnyPort(start) => write!(formatter, "{comma}{start}:*")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(text: &str) -> Origins {
        text.parse().expect("origins")
    }

    #[test]
    fn nobody_is_allowed_unless_somebody_is_named() {
        assert!(origins("").is_empty());
        assert_eq!(origins("").allowed("https://a.example"), None);
        assert_eq!(origins("*").allowed("null"), Some("*"));
    }

    #[test]
    fn an_origin_is_allowed_to_the_letter_or_at_any_port() {
        let allowed = origins("https://chat.example, http://localhost:*");
        for origin in [
            "https://chat.example",
            "HTTPS://Chat.Example",
            "http://localhost:5173",
            "http://localhost",
        ] {
            assert_eq!(allowed.allowed(origin), Some(origin));
        }
        for origin in [
            "https://chat.example:444",
            "http://chat.example",
            "https://chat.example.evil",
            "http://localhost.evil",
            "http://localhost:80x",
            "http://localhost:",
            "null",
            "",
        ] {
            assert_eq!(allowed.allowed(origin), None, "{origin}");
        }
        assert_eq!(allowed.to_string(), "https://chat.example, http://localhost:*");
    }

    #[test]
    fn what_is_no_origin_is_told() {
        for text in
            ["chat.example", "https://", "https://a/b", "https://*.example", "://a", "https://u@a"]
        {
            assert_eq!(text.parse::<Origins>(), Err(NoOrigin(text.to_owned())), "{text}");
        }
    }
}
