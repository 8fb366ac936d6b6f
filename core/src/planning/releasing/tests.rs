//! When pods that end are released, as tables.

use serde_json::json;

use super::*;
use crate::planning::group::{Record, Standing};
use crate::planning::time::time;
use crate::scaling::Activity;

const LIMIT: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
}

/// A pod that was told at `since` to end within `grace` seconds.
fn ending(name: &str, since: u64, grace: u64) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "uid": format!("u-{name}"),
            "deletionTimestamp": time(at(since + grace)),
            "deletionGracePeriodSeconds": grace,
        },
        "status": { "phase": "Running" },
    }))
    .unwrap()
}

fn engine(asked: u32, ready: u32) -> Engine {
    Engine { asked, ready, present: true, ..Engine::default() }
}

fn verdict(in_flight: u32, draining: Option<u64>) -> Verdict {
    Verdict {
        replicas: 0,
        standing: Standing::Leaving,
        record: Record { draining: draining.map(at), ..Record::default() },
        activity: Activity { in_flight, ..Activity::default() },
    }
}

/// When the only pod, ending for 90 seconds from second 0, is released.
fn released(owner: Owner<'_>, now: u64) -> (usize, Option<Moment>) {
    let (released, later) = releasing(&[ending("m-1", 0, 90)], owner, at(now));
    (released.len(), later)
}

fn owner<'a>(engine: &'a Engine, verdict: &'a Verdict) -> Owner<'a> {
    Owner { engine, verdict, drain_limit: LIMIT, scaled_elsewhere: false }
}

#[test]
fn who_was_drained_waits_for_nothing() {
    let (asleep, idle) = (engine(0, 0), verdict(0, Some(0)));
    assert_eq!(released(owner(&asleep, &idle), 0), (1, None));
    assert_eq!(
        released(owner(&asleep, &verdict(0, None)), 0),
        (1, None),
        "by whom, does not matter"
    );
    let (gone, later) = releasing(&[ending("m-1", 0, 1)], owner(&asleep, &idle), at(0));
    assert_eq!((gone, later), (Vec::new(), None), "it was told so already");
}

#[test]
fn what_crossed_the_drain_is_finished_within_its_limit() {
    let (asleep, crossed) = (engine(0, 0), verdict(1, Some(0)));
    assert_eq!(released(owner(&asleep, &crossed), 59), (0, Some(at(60))));
    assert_eq!(released(owner(&asleep, &crossed), 60), (1, None), "its time is over");
    assert_eq!(
        released(owner(&asleep, &verdict(1, None)), 60),
        (0, None),
        "who knows when it began"
    );
}

#[test]
fn an_evicted_pod_finishes_what_it_serves_and_goes_once_nothing_is_in_flight() {
    let up = engine(1, 0);
    assert_eq!(released(owner(&up, &verdict(2, None)), 80), (0, None));
    assert_eq!(released(owner(&up, &verdict(0, None)), 9), (0, Some(at(10))));
    assert_eq!(released(owner(&up, &verdict(0, None)), 10), (1, None));
}

#[test]
fn beside_an_engine_that_serves_on_gateways_are_heard_out() {
    let up = engine(2, 1);
    assert_eq!(released(owner(&up, &verdict(0, None)), 10), (0, Some(at(20))));
    assert_eq!(released(owner(&up, &verdict(0, None)), 20), (1, None));
}

#[test]
fn who_scales_elsewhere_has_drained_nothing() {
    let asleep = engine(0, 0);
    let idle = verdict(0, None);
    let theirs = Owner { scaled_elsewhere: true, ..owner(&asleep, &idle) };
    assert_eq!(released(theirs, 0), (0, Some(at(10))));
}

#[test]
fn pods_that_stay_or_have_ended_are_left_alone() {
    let (asleep, idle) = (engine(0, 0), verdict(0, None));
    let mut stays = ending("stays", 0, 90);
    stays.metadata.deletion_timestamp = None;
    let mut ended = ending("ended", 0, 90);
    ended.status.as_mut().unwrap().phase = Some("Failed".to_owned());
    let nothing = (Vec::new(), None);
    assert_eq!(releasing(&[stays, ended], owner(&asleep, &idle), at(99)), nothing);
}
