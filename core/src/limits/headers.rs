//! What answers say of the limits, in the headers that OpenAI's clients know.

use std::time::Duration;

use super::{Limited, Standing, Unit};

/// The headers of an answer whose caller stands as `standing` says.
pub fn standing_headers(standing: &Standing) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    if let Some((limit, left, reset)) = standing.requests {
        headers.push(("x-ratelimit-limit-requests", limit.to_string()));
        headers.push(("x-ratelimit-remaining-requests", left.to_string()));
        headers.push(("x-ratelimit-reset-requests", span(reset)));
    }
    if let Some((limit, left, reset)) = standing.tokens {
        headers.push(("x-ratelimit-limit-tokens", limit.to_string()));
        headers.push(("x-ratelimit-remaining-tokens", left.to_string()));
        headers.push(("x-ratelimit-reset-tokens", span(reset)));
    }
    headers
}

/// The headers of the answer to a request that is over a limit. Where waiting does not help, clients
/// that retry by themselves are told not to.
pub fn limited_headers(limited: &Limited) -> Vec<(&'static str, String)> {
    let Some(wait) = limited.retry_in else { return vec![("x-should-retry", "false".to_owned())] };
    let figures = Some((limited.limit, limited.left, wait));
    match limited.unit {
        Unit::Requests => standing_headers(&Standing { requests: figures, ..Standing::default() }),
        Unit::Tokens => standing_headers(&Standing { tokens: figures, ..Standing::default() }),
        // No such header is known to clients.
        Unit::Concurrent => Vec::new(),
    }
}

/// `0s`, `300ms` or `2.5s`, never less than it is.
fn span(time: Duration) -> String {
    let milliseconds = time.as_nanos().div_ceil(1_000_000);
    match milliseconds {
        0 => "0s".to_owned(),
        1..1000 => format!("{milliseconds}ms"),
        _ if milliseconds.is_multiple_of(1000) => format!("{}s", milliseconds / 1000),
        _ => format!("{}.{:03}s", milliseconds / 1000, milliseconds % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Scope;

    fn limited(unit: Unit, milliseconds: u64) -> Vec<(&'static str, String)> {
        let retry_in = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
        limited_headers(&Limited { scope: Scope::PerCaller, unit, limit: 5, left: 2, retry_in })
    }

    #[test]
    fn rate_08_the_limit_that_was_reached_is_told() {
        for (milliseconds, reset) in [(300, "300ms"), (2000, "2s"), (90_250, "90.250s")] {
            let expected = [
                ("x-ratelimit-limit-requests", "5".to_owned()),
                ("x-ratelimit-remaining-requests", "2".to_owned()),
                ("x-ratelimit-reset-requests", reset.to_owned()),
            ];
            assert_eq!(limited(Unit::Requests, milliseconds), expected);
        }
        assert_eq!(limited(Unit::Tokens, 1).len(), 3);
        assert_eq!(limited(Unit::Concurrent, 1000), []);
    }

    #[test]
    fn rate_08_who_may_have_nothing_is_told_not_to_come_back() {
        assert_eq!(limited(Unit::Tokens, 0), [("x-should-retry", "false".to_owned())]);
    }
}
