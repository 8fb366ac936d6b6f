//! Engines that say that they can take nothing now. Such an answer means that the request was not
//! begun: it is worth waiting, and the client need not see it.

use std::time::Duration;

/// The pause before the second try, where the engine names none; it doubles with each.
const FIRST: Duration = Duration::from_millis(250);
/// The longest pause of our own choice.
const LONGEST: Duration = Duration::from_secs(8);

const UNAVAILABLE: u16 = 503;

/// How long to pause before a request is sent again that was answered with `status`; `None` if that is
/// the answer to the request itself. `Retry-After` with 503 says of any engine that it is busy;
/// `busy_statuses` are those by which this kind of engine says so without. `tries` counts the pauses
/// before this one.
pub fn pause(
    status: u16,
    retry_after: Option<&str>,
    busy_statuses: &[u16],
    tries: u32,
) -> Option<Duration> {
    let busy = busy_statuses.contains(&status) || (status == UNAVAILABLE && retry_after.is_some());
    if !busy {
        return None;
    }
    // A date would need a clock, and engines send none.
    let named = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let factor = 2_u32.checked_pow(tries).unwrap_or(u32::MAX);
    Some(named.unwrap_or_else(|| FIRST.saturating_mul(factor).min(LONGEST)).max(FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_with_503_means_busy_whoever_says_it() {
        assert_eq!(pause(503, Some(" 2 "), &[], 0), Some(Duration::from_secs(2)));
        assert_eq!(pause(503, Some("0"), &[], 0), Some(FIRST), "a tight loop helps nobody");
        assert_eq!(pause(503, None, &[], 0), None);
        assert_eq!(pause(429, Some("2"), &[], 0), None, "that may be the client's own limit");
        assert_eq!(pause(500, Some("2"), &[], 0), None);
    }

    #[test]
    fn some_engines_say_it_by_the_status_alone_and_are_asked_ever_more_seldom() {
        let pauses: Vec<_> = [0, 1, 2, 5, 40].map(|tries| pause(503, None, &[503], tries)).into();
        let expected = [250, 500, 1000, 8000, 8000].map(|pause| Some(Duration::from_millis(pause)));
        assert_eq!(pauses, expected);
        let date = Some("Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(pause(503, date, &[], 1), Some(Duration::from_millis(500)));
        assert_eq!(pause(429, None, &[429], 0), Some(FIRST));
    }
}
