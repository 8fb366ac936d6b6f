//! What answers say of the limits, in the headers that OpenAI's clients know.

use std::time::Duration;

use bytes::Bytes;

use super::{Limited, Unit};

/// The headers that tell of requests: the limit, what is left, and when all of it is back.
pub const REQUEST_HEADERS: [&str; 3] =
    ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"];
/// The same of tokens.
pub const TOKEN_HEADERS: [&str; 3] =
    ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"];

/// Room for the values of three headers.
const ROOM: usize = 48;

/// The headers of the answer to a request that is over a limit. Where waiting does not help, clients
/// that retry by themselves are told not to.
pub fn limited_headers(limited: &Limited) -> Vec<(&'static str, Bytes)> {
    let never = || vec![("x-should-retry", Bytes::from_static(b"false"))];
    let Some(wait) = limited.retry_in else { return never() };
    let names = match limited.unit {
        Unit::Requests => REQUEST_HEADERS,
        Unit::Tokens => TOKEN_HEADERS,
        // No such header is known to clients.
        Unit::Concurrent => return Vec::new(),
    };
    names.into_iter().zip(figures((limited.limit, limited.left, wait))).collect()
}

/// What three such headers say where so much of a limit is left, and all of it is back after that time. In one
/// piece of memory: every answer to a caller with limits has them.
pub fn figures((limit, left, reset): (u32, u64, Duration)) -> [Bytes; 3] {
    let mut digits = itoa::Buffer::new();
    let mut text = String::with_capacity(ROOM);
    text.push_str(digits.format(limit));
    let limit = text.len();
    text.push_str(digits.format(left));
    let left = text.len();
    push_span(&mut text, reset);
    let text = Bytes::from(text);
    [text.slice(..limit), text.slice(limit..left), text.slice(left..)]
}

/// `0s`, `300ms` or `2.500s`, never less than it is.
fn push_span(text: &mut String, time: Duration) {
    let mut digits = itoa::Buffer::new();
    let begun = u64::from(time.subsec_nanos().div_ceil(1_000_000));
    let milliseconds = time.as_secs().saturating_mul(1000).saturating_add(begun);
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    if milliseconds == 0 {
        return text.push_str("0s");
    }
    if seconds == 0 {
        text.push_str(digits.format(rest));
        return text.push_str("ms");
    }
    text.push_str(digits.format(seconds));
    if rest != 0 {
        text.push('.');
        // Three digits, with the zeros in front.
        text.push_str(digits.format(1000 + rest).get(1..).unwrap_or_default());
    }
    text.push('s');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Scope;

    fn limited(unit: Unit, milliseconds: u64) -> Vec<(&'static str, Bytes)> {
        let retry_in = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
        let scope = Scope::PerCaller;
        limited_headers(&Limited { scope, unit, limit: 5, rate: None, left: 2, retry_in })
    }

    #[test]
    fn rate_08_the_limit_that_was_reached_is_told() {
        for (milliseconds, reset) in
            [(300, "300ms"), (2000, "2s"), (90_250, "90.250s"), (1_007, "1.007s")]
        {
            let expected = [
                ("x-ratelimit-limit-requests", Bytes::from("5")),
                ("x-ratelimit-remaining-requests", Bytes::from("2")),
                ("x-ratelimit-reset-requests", Bytes::from(reset)),
            ];
            assert_eq!(limited(Unit::Requests, milliseconds), expected);
        }
        assert_eq!(limited(Unit::Tokens, 1).len(), 3);
        assert_eq!(limited(Unit::Concurrent, 1000), []);
    }

    #[test]
    fn rate_08_who_may_have_nothing_is_told_not_to_come_back() {
        assert_eq!(limited(Unit::Tokens, 0), [("x-should-retry", Bytes::from("false"))]);
    }
}
