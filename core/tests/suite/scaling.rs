//! When a model sleeps, under random requests: never while it has something to do, and never before it
//! has been quiet for its whole timeout.

use std::time::Duration;

use flexinfer_core::moment::Moment;
use flexinfer_core::scaling::{Activity, Rest, Warmth, sleeps_at};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask,
    Serve,
    Finish,
    Leave,
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Ask),
        3 => Just(Event::Serve),
        3 => Just(Event::Finish),
        1 => Just(Event::Leave),
        4 => (0_u64..200).prop_map(Event::Pass),
    ]
}

/// A model that became ready at the origin.
#[derive(Default)]
struct Asked {
    activity: Activity,
    now: Moment,
    /// When it last had something to do, as the test sees it.
    worked_until: Moment,
}

impl Asked {
    fn happen(&mut self, event: Event) {
        let (activity, now) = (&mut self.activity, self.now);
        match event {
            Event::Ask => activity.waiting += 1,
            Event::Leave => activity.waiting = activity.waiting.saturating_sub(1),
            Event::Serve if activity.waiting > 0 => {
                activity.waiting -= 1;
                activity.in_flight += 1;
            }
            Event::Finish if activity.in_flight > 0 => {
                activity.in_flight -= 1;
                activity.last_active = Some(now);
                self.worked_until = now;
            }
            Event::Serve | Event::Finish => {}
            Event::Pass(seconds) => self.now = now + Duration::from_secs(seconds),
        }
    }
}

proptest! {
    #[test]
    fn a_model_sleeps_when_it_was_quiet_for_its_whole_timeout_and_not_before(
        events in prop::collection::vec(event(), 1..80),
        timeout in 1_u64..400,
    ) {
        let idle_timeout = Duration::from_secs(timeout);
        let mut model = Asked::default();
        for event in events {
            model.happen(event);
            let sleeps = |warmth| {
                sleeps_at(Rest { idle_timeout, warmth }, &model.activity, Moment::ORIGIN)
            };
            prop_assert_eq!(sleeps(Warmth::Pinned), None);
            prop_assert_eq!(sleeps(Warmth::Primary), None);
            let quiet = model.activity.in_flight == 0 && model.activity.waiting == 0;
            let expected = quiet.then_some(model.worked_until + idle_timeout);
            prop_assert_eq!(sleeps(Warmth::None), expected);
        }
    }
}
