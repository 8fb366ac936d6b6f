//! Reports of gateways as tables: when they count, and for how long.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};

use super::*;
use crate::scaling::quiet_since;

const EXPIRY: Expiry = Expiry(Duration::from_secs(90));

fn at(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
}

/// A clock that is an hour wrong.
fn gateways_clock(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_003_600 + seconds).unwrap()
}

fn entry(gateway: &str, in_flight: i32, waiting: i32, renewed: i64) -> Traffic {
    Traffic {
        gateway: gateway.into(),
        in_flight,
        waiting,
        peak: 0,
        draining: false,
        renew_time: MicroTime(gateways_clock(renewed)),
    }
}

fn reports(traffic: Vec<Traffic>) -> ModelStatus {
    ModelStatus { traffic, ..ModelStatus::default() }
}

#[test]
fn gateways_are_counted_together() {
    let mut demand = Demand::default();
    demand.look(Some(&reports(vec![entry("a", 2, 0, 0), entry("b", 1, 3, 0)])), at(0));
    let activity = demand.activity(EXPIRY, at(1));
    assert_eq!((activity.in_flight, activity.waiting), (3, 3));
    assert_eq!(activity.waiting_since, Some(at(0)));
}

#[test]
fn waiting_counts_from_when_it_was_first_seen() {
    let mut demand = Demand::default();
    demand.look(Some(&reports(vec![entry("a", 0, 1, 0)])), at(0));
    demand.look(Some(&reports(vec![entry("a", 0, 2, 7)])), at(7));
    assert_eq!(demand.activity(EXPIRY, at(8)).waiting_since, Some(at(0)));
    demand.look(Some(&reports(vec![entry("a", 0, 0, 9)])), at(9));
    assert_eq!(demand.activity(EXPIRY, at(9)).waiting_since, None);
}

#[test]
fn a_gateway_that_stops_to_report_is_gone_by_our_clock() {
    let mut demand = Demand::default();
    let status = reports(vec![entry("a", 1, 0, 0)]);
    demand.look(Some(&status), at(0));
    demand.look(Some(&status), at(80));
    assert_eq!(demand.activity(EXPIRY, at(89)).in_flight, 1);
    assert_eq!(demand.expires_at(EXPIRY, at(89)), Some(at(90)));
    assert_eq!(demand.activity(EXPIRY, at(90)).in_flight, 0);
}

#[test]
fn after_a_time_without_sight_every_gateway_counts_again() {
    let mut demand = Demand::default();
    demand.look(Some(&reports(vec![entry("a", 1, 0, 0)])), at(0));
    demand.renew_all(at(300));
    assert_eq!(demand.activity(EXPIRY, at(301)).in_flight, 1);
}

#[test]
fn unknown_is_not_zero_until_each_gateway_has_promised_to_give_nothing_more() {
    let promise =
        |gateway: &str, renewed| Traffic { draining: true, ..entry(gateway, 0, 0, renewed) };
    let mut demand = Demand::default();
    demand.look(Some(&reports(vec![promise("a", 0), entry("b", 0, 0, 0)])), at(0));
    assert!(!demand.all_promised_since(at(10)), "that was for another time");
    demand.look(Some(&reports(vec![promise("a", 11), entry("b", 0, 0, 11)])), at(11));
    assert!(!demand.all_promised_since(at(10)), "b has not");
    demand.look(Some(&reports(vec![promise("a", 11), promise("b", 12)])), at(12));
    assert!(demand.all_promised_since(at(10)));
}

#[test]
fn the_end_of_the_last_request_counts_from_when_it_was_seen() {
    let mut demand = Demand::default();
    demand.look(Some(&reports(vec![entry("a", 1, 0, 0)])), at(0));
    demand.look(Some(&reports(vec![entry("a", 0, 0, 20)])), at(20));
    assert_eq!(demand.activity(EXPIRY, at(60)).last_active, Some(at(20)));
}

#[test]
fn requests_between_two_reports_show_in_the_peak() {
    let mut demand = Demand::default();
    demand.look(Some(&reports(vec![entry("a", 0, 0, 0)])), at(0));
    let peak = Traffic { peak: 4, ..entry("a", 0, 0, 10) };
    demand.look(Some(&reports(vec![peak])), at(10));
    assert_eq!(demand.activity(EXPIRY, at(10)).last_active, Some(at(10)));
}

#[test]
fn a_gateways_wrong_clock_neither_ages_nor_rejuvenates() {
    let mut demand = Demand::default();
    let mut status = reports(vec![]);
    demand.look(Some(&status), at(0));
    status.last_active_time = Some(Time(gateways_clock(0)));
    demand.look(Some(&status), at(5));
    let last = demand.activity(EXPIRY, at(6)).last_active;
    assert_eq!(last, Some(at(5)), "an hour in the future counts as now");
}

fn asleep_since(seconds: i64, last_active: i64) -> ModelStatus {
    let time = |seconds| Time(Timestamp::from_second(1_000_000 + seconds).unwrap());
    ModelStatus {
        last_active_time: Some(time(last_active)),
        conditions: vec![Condition {
            type_: "Ready".into(),
            status: "False".into(),
            reason: "WaitingForActivation".into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: time(seconds),
        }],
        ..ModelStatus::default()
    }
}

#[test]
fn moving_last_active_time_by_hand_wakes_a_sleeping_model() {
    let mut demand = Demand::default();
    demand.look(Some(&asleep_since(0, 10)), at(11));
    assert_eq!(demand.activity(EXPIRY, at(11)).waiting, 1);
    assert_eq!(demand.activity(EXPIRY, at(500)).waiting, 0, "and not for ever");
}

#[test]
fn activity_from_before_it_fell_asleep_wakes_nothing() {
    let mut demand = Demand::default();
    demand.look(Some(&asleep_since(10, 5)), at(11));
    assert!(demand.activity(EXPIRY, at(11)).idle());
}

#[test]
fn where_gateways_report_last_active_time_alone_wakes_nothing() {
    let mut demand = Demand::default();
    let traffic = vec![entry("a", 0, 0, 0)];
    demand.look(Some(&ModelStatus { traffic, ..asleep_since(0, 10) }), at(11));
    assert!(demand.activity(EXPIRY, at(11)).idle());
    assert!(demand.activity(EXPIRY, at(105)).idle(), "not either when it has been silent for long");
}

#[test]
fn short_idle_timeouts_shorten_the_patience_with_gateways() {
    assert_eq!(Expiry::of(Duration::from_secs(600)).length(), Duration::from_secs(90));
    assert_eq!(Expiry::of(Duration::from_secs(30)).length(), Duration::from_secs(30));
    assert_eq!(Expiry::of(Duration::ZERO).length(), SHORTEST);
}

fn ready(traffic: Vec<Traffic>) -> ModelStatus {
    let mut status = asleep_since(0, 0);
    status.conditions[0].status = "True".into();
    ModelStatus { traffic, ..status }
}

#[test]
fn queue_08_what_is_up_when_a_controller_begins_has_a_whole_idle_time_before_it() {
    let mut demand = Demand::default();
    let quiet = |demand: &Demand, now| quiet_since(&demand.activity(EXPIRY, now), at(0));
    demand.look(Some(&ready(vec![])), at(5000));
    assert_eq!(quiet(&demand, at(5001)), at(5000));
    demand.look(Some(&ready(vec![])), at(5100));
    assert_eq!(quiet(&demand, at(5101)), at(5000), "only the first sight counts");
    let mut asleep = Demand::default();
    asleep.look(Some(&asleep_since(10, 5)), at(5000));
    assert_eq!(quiet(&asleep, at(5001)), at(5), "nothing is to be kept up");
}

#[test]
fn what_is_up_when_a_controller_begins_was_not_used_for_that() {
    let mut demand = Demand::default();
    let unused = ModelStatus { last_active_time: None, ..ready(vec![]) };
    demand.look(Some(&unused), at(5000));
    assert_eq!(demand.activity(EXPIRY, at(5001)).last_active, None);
}

#[test]
fn queue_08_a_stream_counts_for_a_controller_that_begins() {
    let mut demand = Demand::default();
    demand.look(Some(&ready(vec![entry("a", 1, 0, 0)])), at(5000));
    assert_eq!(demand.activity(EXPIRY, at(5089)).in_flight, 1);
}

#[test]
fn queue_08_a_gateway_that_leaves_ends_what_it_had_when_that_is_seen() {
    let mut demand = Demand::default();
    demand.look(Some(&reports(vec![entry("a", 1, 0, 0), entry("b", 0, 0, 0)])), at(0));
    demand.look(Some(&reports(vec![entry("b", 0, 0, 0)])), at(50));
    let activity = demand.activity(EXPIRY, at(51));
    assert_eq!((activity.in_flight, activity.last_active), (0, Some(at(50))));
}

#[test]
fn queue_14_a_short_request_on_a_cold_model_begins_a_whole_idle_time() {
    let mut demand = Demand::default();
    demand.look(Some(&asleep_since(0, 0)), at(10));
    // It came and went between two reports: no gateway was ever seen to have anything.
    let came_and_went = Traffic { peak: 1, ..entry("a", 0, 0, 20) };
    demand.look(Some(&reports(vec![came_and_went])), at(20));
    let activity = demand.activity(EXPIRY, at(21));
    assert_eq!((activity.in_flight, activity.waiting), (0, 0));
    assert_eq!(activity.last_active, Some(at(20)));
}
