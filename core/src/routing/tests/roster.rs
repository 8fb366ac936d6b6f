//! Rosters in situations that people know.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use strum::IntoEnumIterator as _;

use super::*;

const SESSIONS: usize = 1000;

/// Where each of many sessions goes while nothing else is going on.
fn places(roster: &mut Roster<SocketAddr>) -> Vec<SocketAddr> {
    (0..SESSIONS)
        .map(|number| roster.choose(&session(&format!("session-{number}"))).expect("one is open"))
        .collect()
}

fn moved(before: &[SocketAddr], after: &[SocketAddr]) -> usize {
    before.iter().zip(after).filter(|(before, after)| before != after).count()
}

#[test]
fn each_has_its_turn() {
    let mut roster = roster(Strategy::RoundRobin, 3, None);
    let turns: Vec<_> = (0..6).filter_map(|_| roster.book(&Wish::default())).collect();
    let once: Vec<_> = (0..3).map(endpoint).collect();
    assert_eq!(turns, [once.clone(), once].concat());
}

#[test]
fn who_is_full_or_closed_loses_no_turn() {
    let mut roster = roster(Strategy::RoundRobin, 3, Some(1));
    roster.set_open(&endpoint(0), false);
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(1)));
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(2)));
    assert_eq!(roster.book(&Wish::default()), None);
    roster.finish(&endpoint(2));
    roster.set_open(&endpoint(0), true);
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(0)));
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(2)));
}

#[test]
fn the_least_loaded_is_taken_and_equals_take_turns() {
    let mut roster = roster(Strategy::LeastLoaded, 3, None);
    let turns: Vec<_> = (0..3).filter_map(|_| roster.book(&Wish::default())).collect();
    assert_eq!(turns, [endpoint(0), endpoint(1), endpoint(2)]);
    roster.finish(&endpoint(1));
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(1)));
    for id in &turns {
        roster.finish(id);
    }
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(0)), "its turn was longest ago");
}

#[test]
fn route_05_load_counts_from_the_booking_on() {
    for strategy in Strategy::iter() {
        let mut roster = roster(strategy, 2, None);
        let mut taken: BTreeMap<SocketAddr, u32> = BTreeMap::new();
        for number in 0..100 {
            let wish = if number % 2 == 0 { Wish::default() } else { session(&number.to_string()) };
            let chosen = roster.book(&wish).expect("both are open");
            *taken.entry(chosen).or_default() += 1;
        }
        assert!(taken.values().all(|count| (40..=60).contains(count)), "{strategy}: {taken:?}");
    }
}

#[test]
fn a_session_stays_where_it_is() {
    let mut roster = roster(Strategy::SessionAffinity, 5, None);
    let first = roster.book(&session("a")).expect("open");
    for other in 0..20 {
        roster.finish(&first);
        let visitor = roster.book(&session(&format!("other-{other}"))).expect("open");
        roster.finish(&visitor);
        assert_eq!(roster.book(&session("a")), Some(first));
    }
}

#[test]
fn a_hot_key_is_passed_on_before_it_buries_its_endpoint() {
    for count in [2_u8, 5, 10] {
        let mut roster = roster(Strategy::Prefix, count, None);
        let mut most = 0;
        for total in 1..=200_u32 {
            let chosen = roster.book(&session("the one prompt")).expect("open");
            most = most.max(roster.in_flight(&chosen));
            let share = f64::from(total) / f64::from(count) * 1.25;
            assert!(f64::from(most) <= share + 1.0, "{most} of {total} on one of {count}");
        }
    }
}

#[test]
fn route_09_only_the_sessions_of_a_lost_endpoint_move() {
    let mut roster = roster(Strategy::SessionAffinity, 5, None);
    let before = places(&mut roster);
    let lost = before.iter().filter(|place| **place == endpoint(2)).count();
    roster.set_members([0, 1, 3, 4].map(endpoint));
    let after = places(&mut roster);
    assert_eq!(moved(&before, &after), lost, "others moved too");
    assert!((100..350).contains(&lost), "{lost} of {SESSIONS} were on one of five");
    let heirs: Vec<_> = [0, 1, 3, 4]
        .map(|number| {
            let arrived = |(before, after): &(_, _)| before != after && *after == &endpoint(number);
            before.iter().zip(&after).filter(arrived).count()
        })
        .into();
    assert!(heirs.iter().all(|count| *count > 0), "one took all of them: {heirs:?}");
}

#[test]
fn route_09_a_new_endpoint_takes_its_share_and_moves_nothing_else() {
    let mut roster = roster(Strategy::SessionAffinity, 5, None);
    let before = places(&mut roster);
    roster.set_members((0..6).map(endpoint));
    roster.set_open(&endpoint(5), true);
    let after = places(&mut roster);
    let taken = after.iter().filter(|place| **place == endpoint(5)).count();
    assert_eq!(moved(&before, &after), taken);
    assert!((80..300).contains(&taken), "{taken}");
    roster.set_members((0..5).map(endpoint));
    assert_eq!(places(&mut roster), before, "back to what it was");
}

#[test]
fn route_09_readiness_alone_moves_nothing_for_good() {
    let mut roster = roster(Strategy::SessionAffinity, 5, None);
    let before = places(&mut roster);
    roster.set_open(&endpoint(2), false);
    let meanwhile = places(&mut roster);
    let its_own = before.iter().filter(|place| **place == endpoint(2)).count();
    assert_eq!(moved(&before, &meanwhile), its_own);
    roster.set_members((0..5).map(endpoint));
    roster.set_open(&endpoint(2), true);
    assert_eq!(places(&mut roster), before);
}

#[test]
fn the_order_in_which_endpoints_came_does_not_matter() {
    let mut one = roster(Strategy::SessionAffinity, 5, None);
    let mut other = Roster::new(Strategy::SessionAffinity, None);
    let _ = other.choose(&session("the ring is made while it is empty"));
    for number in [3, 1, 4, 0, 2] {
        let members: Vec<_> = other.members().copied().chain([endpoint(number)]).collect();
        other.set_members(members);
        other.set_open(&endpoint(number), true);
    }
    assert_eq!(places(&mut one), places(&mut other));
}

#[test]
fn who_failed_is_taken_again_only_when_nobody_else_is_open() {
    for strategy in Strategy::iter() {
        let mut roster = roster(strategy, 2, Some(1));
        let avoid = |key| Wish { avoid: vec![endpoint(0)], ..key };
        for wish in [avoid(Wish::default()), avoid(session("s")), avoid(session("t"))] {
            assert_eq!(roster.book(&wish), Some(endpoint(1)));
            assert_eq!(roster.book(&wish), None, "it waits for the other one");
            roster.finish(&endpoint(1));
        }
        roster.set_open(&endpoint(1), false);
        assert_eq!(roster.book(&avoid(Wish::default())), Some(endpoint(0)));
    }
}

#[test]
fn who_holds_the_state_is_waited_for() {
    let mut roster = roster(Strategy::LeastLoaded, 3, Some(1));
    let wish = Wish { holder: Some(endpoint(1)), ..Wish::default() };
    assert_eq!(roster.book(&wish), Some(endpoint(1)));
    assert_eq!(roster.book(&wish), None);
    roster.set_members([0, 2].map(endpoint));
    assert!(roster.book(&wish).is_some(), "who is gone holds nothing any more");
}

#[test]
fn who_alone_has_it_is_waited_for_while_closed_and_until_it_is_gone() {
    let mut roster = roster(Strategy::RoundRobin, 3, None);
    let wish = Wish { holder: Some(endpoint(1)), insists: Some("a.png".into()), ..Wish::default() };
    roster.set_open(&endpoint(1), false);
    assert_eq!(roster.book(&wish), None, "it does not answer for a moment");
    assert!(roster.book(&Wish { insists: None, ..wish.clone() }).is_some());
    roster.set_open(&endpoint(1), true);
    assert_eq!(roster.book(&wish), Some(endpoint(1)));
    roster.set_members([0, 2].map(endpoint));
    assert!(roster.book(&wish).is_some(), "it is gone, though it finishes what it has");
}

#[test]
fn a_binding_key_is_not_passed_on_for_load() {
    let mut roster = roster(Strategy::RoundRobin, 4, Some(2));
    let key = Key::new(Source::ClientId, "c1");
    let wish = Wish { key: Some(key), ..Wish::default() };
    let first = roster.book(&wish);
    assert!(first.is_some());
    assert_eq!(roster.book(&wish), first);
    assert_eq!(roster.book(&wish), None, "full, and nobody else will do");
}

#[test]
fn who_is_gone_finishes_what_it_has() {
    let mut roster = roster(Strategy::RoundRobin, 1, None);
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(0)));
    roster.set_members([]);
    assert_eq!((roster.any_open(), roster.in_flight(&endpoint(0))), (false, 1));
    roster.set_members([endpoint(0)]);
    roster.set_open(&endpoint(0), true);
    assert_eq!(roster.in_flight(&endpoint(0)), 1, "back with what it still has");
    roster.set_members([]);
    roster.finish(&endpoint(0));
    assert_eq!(roster.all_in_flight(), 0);
    assert_eq!(roster.members().count(), 0);
}

#[test]
fn a_change_of_strategy_or_slots_counts_at_once() {
    let mut roster = roster(Strategy::RoundRobin, 2, None);
    roster.book(&Wish::default());
    roster.book(&Wish::default());
    roster.finish(&endpoint(1));
    roster.configure(Strategy::LeastLoaded, Some(1));
    assert_eq!(roster.book(&Wish::default()), Some(endpoint(1)));
    assert_eq!(roster.book(&Wish::default()), None);
}
