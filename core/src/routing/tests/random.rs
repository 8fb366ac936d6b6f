//! Random events against every strategy, with a plain model beside the roster.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use strum::IntoEnumIterator as _;

use super::{endpoint, roster, session};
use crate::routing::{Key, Roster, Source, Strategy, Wish};

#[derive(Clone, Debug)]
enum Event {
    Members(Vec<u8>),
    Open(u8, bool),
    Book { key: Option<u8>, holder: Option<u8>, insists: bool, avoid: Vec<u8> },
    Finish(usize),
    Configure(Strategy, Option<u32>),
}

fn strategy() -> impl Generator<Value = Strategy> {
    proptest::sample::select(Strategy::iter().collect::<Vec<_>>())
}

fn event() -> impl Generator<Value = Event> {
    let number = 0..6_u8;
    let some = proptest::option::of(number.clone());
    let several = proptest::collection::vec(number.clone(), 0..6);
    prop_oneof![
        1 => several.clone().prop_map(Event::Members),
        4 => (number, any::<bool>()).prop_map(|(id, open)| Event::Open(id, open)),
        8 => (proptest::option::of(any::<u8>()), some, any::<bool>(), several)
            .prop_map(|(key, holder, insists, avoid)| Event::Book { key, holder, insists, avoid }),
        6 => any::<usize>().prop_map(Event::Finish),
        1 => (strategy(), proptest::option::of(1..4_u32))
            .prop_map(|(strategy, slots)| Event::Configure(strategy, slots)),
    ]
}

/// What the roster should know.
#[derive(Default)]
struct Known {
    open: BTreeMap<SocketAddr, bool>,
    booked: Vec<SocketAddr>,
    slots: Option<u32>,
}

impl Known {
    fn in_flight(&self, id: &SocketAddr) -> u32 {
        u32::try_from(self.booked.iter().filter(|booked| *booked == id).count()).expect("few")
    }

    fn free(&self, id: &SocketAddr) -> bool {
        self.open.get(id) == Some(&true)
            && self.slots.is_none_or(|slots| self.in_flight(id) < slots)
    }

    fn is_open(&self, id: &SocketAddr) -> bool {
        self.open.get(id) == Some(&true)
    }

    /// Those who may be chosen for `wish`.
    fn eligible(&self, wish: &Wish<SocketAddr>) -> Vec<SocketAddr> {
        let waits = |id: &SocketAddr| {
            self.is_open(id) || wish.insists.is_some() && self.open.contains_key(id)
        };
        if let Some(holder) = wish.holder.filter(waits) {
            return [holder].into_iter().filter(|id| self.free(id)).collect();
        }
        let open: Vec<_> = self.open.keys().filter(|id| self.is_open(id)).copied().collect();
        let others = open.iter().any(|id| !wish.avoid.contains(id));
        let allowed = |id: &SocketAddr| !others || !wish.avoid.contains(id);
        open.into_iter().filter(|id| self.free(id) && allowed(id)).collect()
    }
}

fn apply(roster: &mut Roster<SocketAddr>, known: &mut Known, event: Event) {
    match event {
        Event::Members(numbers) => {
            let members: Vec<_> = numbers.into_iter().map(endpoint).collect();
            known.open.retain(|id, _| members.contains(id));
            for id in &members {
                known.open.entry(*id).or_insert(false);
            }
            roster.set_members(members);
        }
        Event::Open(number, open) => {
            let id = endpoint(number);
            roster.set_open(&id, open);
            if let Some(known) = known.open.get_mut(&id) {
                *known = open;
            }
        }
        Event::Book { key, holder, insists, avoid } => {
            let wish = Wish {
                key: key.map(|key| Key::new(Source::SessionHeader, &key.to_string())),
                holder: holder.map(endpoint),
                insists: insists.then(String::new),
                avoid: {
                    let mut avoid: Vec<_> = avoid.into_iter().map(endpoint).collect();
                    avoid.sort();
                    avoid.dedup();
                    avoid
                },
            };
            let eligible = known.eligible(&wish);
            let chosen = roster.book(&wish);
            assert_eq!(chosen.is_some(), !eligible.is_empty(), "{wish:?} {eligible:?}");
            if let Some(chosen) = chosen {
                assert!(eligible.contains(&chosen), "{chosen} is none of {eligible:?}");
                known.booked.push(chosen);
            }
        }
        Event::Finish(_) if known.booked.is_empty() => {}
        Event::Finish(index) => {
            let booked = known.booked.swap_remove(index % known.booked.len());
            roster.finish(&booked);
        }
        Event::Configure(strategy, slots) => {
            known.slots = slots;
            roster.configure(strategy, slots);
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_only_who_is_open_and_free_is_chosen_and_every_slot_comes_back(
        start in strategy(),
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let mut roster = Roster::new(start, None);
        let mut known = Known::default();
        for event in events {
            apply(&mut roster, &mut known, event);
            prop_assert!(roster.members().eq(known.open.keys()));
            for id in (0..6).map(endpoint) {
                prop_assert_eq!(roster.in_flight(&id), known.in_flight(&id));
                prop_assert_eq!(roster.is_open(&id), known.is_open(&id));
            }
            prop_assert_eq!(roster.any_open(), known.open.values().any(|open| *open));
            prop_assert_eq!(roster.any_free(), known.open.keys().any(|id| known.free(id)));
        }
        for booked in known.booked {
            roster.finish(&booked);
        }
        prop_assert_eq!(roster.all_in_flight(), 0);
    }

    #[test]
    fn a_key_goes_to_the_same_place_again_while_nothing_else_is_going_on(
        strategy in strategy(),
        count in 1..20_u8,
        key in any::<String>(),
    ) {
        let mut roster = roster(strategy, count, Some(1));
        let first = roster.book(&session(&key)).expect("all are free");
        roster.finish(&first);
        prop_assert_eq!(roster.book(&session(&key)), Some(first));
    }
}
