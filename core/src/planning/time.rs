//! Times on a cluster: a [`Moment`] counts from the Unix epoch there, so that it compares with the
//! times that objects carry.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::moment::Moment;

/// The moment of an object's `time`; the origin for one before 1970.
pub fn moment(time: &Time) -> Moment {
    let since_epoch = Duration::try_from(time.0.as_duration()).unwrap_or_default();
    Moment::after_origin(since_epoch)
}

/// A `moment` as objects carry it, in whole seconds, which is all that they keep.
pub fn time(moment: Moment) -> Time {
    let seconds = moment.since(Moment::ORIGIN).as_secs();
    let since_epoch = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    Time(Timestamp::from_duration(since_epoch).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_back_from_an_object_in_whole_seconds() {
        let when = Moment::after_origin(Duration::from_millis(1_700_000_000_900));
        let back = moment(&time(when));
        assert_eq!(when.since(back), Duration::from_millis(900));
    }

    #[test]
    fn a_time_before_1970_is_the_origin() {
        let old = Time(Timestamp::from_second(-5).unwrap());
        assert_eq!(moment(&old), Moment::ORIGIN);
    }
}
