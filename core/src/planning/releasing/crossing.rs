//! Requests that cross the word to leave: random ones at gateways of which some never had anything of the model, and
//! all of which are told late and heard late.

use std::time::Duration;

use flexinfer_crds::model::{ModelStatus, Traffic};
use flexinfer_crds::{Model, ModelSpec};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use proptest::prelude::*;
use serde_json::json;

use super::{Owner, releasing};
use crate::effective::{Defaults, Effective};
use crate::moment::Moment;
use crate::planning::group::{Candidate, Record, Verdict, decide};
use crate::planning::model::{Demand, Engine};
use crate::planning::time::time;

/// Everything is looked at so often, in milliseconds.
const STEP: usize = 20;
/// When the model is to leave.
const LEAVES: u64 = 1_500;
/// How long after it was told to go a pod is seen to end.
const SEEN: u64 = 40;
/// When it has to be over: every request is.
const BOUND: u64 = 30_000;

fn at(milliseconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000) + Duration::from_millis(milliseconds))
}

/// A gateway, and what is known of it.
#[derive(Clone, Debug)]
struct Gateway {
    name: String,
    /// How long a word takes to it, and one of it.
    hears_after: u64,
    heard_after: u64,
    /// Requests to come: when, and how long each takes.
    requests: Vec<(u64, u64)>,
    /// When those in flight end.
    in_flight: Vec<u64>,
    /// What it last wrote, and what is known of that.
    wrote: Option<(usize, bool)>,
    known: Option<Traffic>,
    /// On its way, and when it arrives.
    writing: Option<(u64, Traffic)>,
}

impl Gateway {
    fn live(&mut self, now: u64, told: Option<u64>) {
        self.in_flight.retain(|end| *end > now);
        let closed = told.is_some_and(|told| now >= told + self.hears_after);
        let (come, later) = self.requests.iter().partition(|(when, _)| *when <= now);
        self.requests = later;
        let come: Vec<(u64, u64)> = come;
        self.in_flight.extend(come.iter().filter(|_| !closed).map(|(_, takes)| now + takes));
        if self.writing.as_ref().is_some_and(|(arrives, _)| *arrives <= now) {
            self.known = self.writing.take().map(|(_, traffic)| traffic);
        }
        let news = (self.in_flight.len(), closed);
        let first = self.wrote.is_none() && news.0 == 0;
        if self.writing.is_none() && self.wrote != Some(news) && !first {
            self.wrote = Some(news);
            self.writing = Some((now + self.heard_after, self.traffic(now, news)));
        }
    }

    fn traffic(&self, now: u64, (in_flight, draining): (usize, bool)) -> Traffic {
        let renewed = Timestamp::from_millisecond(i64::try_from(now).unwrap()).unwrap();
        let in_flight = i32::try_from(in_flight).unwrap();
        Traffic {
            gateway: self.name.clone(),
            in_flight,
            waiting: 0,
            peak: in_flight,
            draining,
            renew_time: MicroTime(renewed),
        }
    }
}

/// A model that serves, and is to leave.
struct Scene {
    model: Effective,
    engine: Engine,
    demand: Demand,
    record: Record,
    /// When gateways were told, and when the engine was.
    told: Option<u64>,
    ended: Option<u64>,
}

impl Scene {
    fn new() -> Self {
        let spec = ModelSpec { backend: "simulator".into(), ..ModelSpec::default() };
        let engine = Engine {
            asked: 1,
            ready: 1,
            present: true,
            ready_since: Some(at(0)),
            made: Some(at(0)),
            ..Engine::default()
        };
        Self {
            model: Effective::of(&Model::new("m", spec), 1, &Defaults::default()).unwrap(),
            engine,
            demand: Demand::default(),
            record: Record::default(),
            told: None,
            ended: None,
        }
    }

    fn decide(&mut self, now: u64) -> Verdict {
        let candidate = Candidate {
            model: &self.model,
            engine: self.engine.clone(),
            demand: &self.demand,
            obstructed: false,
            deleted: now >= LEAVES,
            evicted: false,
            serving_since: None,
            last_load: None,
            record: self.record.clone(),
        };
        let verdict = decide(&[candidate], None, at(now)).verdicts.remove(0);
        self.record = verdict.record.clone();
        if now >= LEAVES {
            self.told = self.told.or(Some(now));
        }
        if now >= LEAVES && verdict.replicas == 0 && self.ended.is_none() {
            (self.engine.asked, self.engine.ready) = (0, 0);
            self.ended = Some(now);
        }
        verdict
    }

    /// Whether its pod is told to wait no longer.
    fn released(&self, verdict: &Verdict, now: u64) -> bool {
        let Some(ended) = self.ended.filter(|ended| now >= ended + SEEN) else { return false };
        let pod: Pod = serde_json::from_value(json!({ "metadata": {
            "name": "m-1",
            "uid": "u-1",
            "deletionTimestamp": time(at(ended + 90_000)),
            "deletionGracePeriodSeconds": 90,
        } }))
        .unwrap();
        let owner = Owner {
            engine: &self.engine,
            verdict,
            drain_limit: self.model.drain_limit,
            scaled_elsewhere: false,
        };
        !releasing([&pod], owner, at(now)).0.is_empty()
    }
}

fn any_gateway() -> impl Strategy<Value = (u64, u64, Vec<(u64, u64)>)> {
    let requests = proptest::collection::vec((0..2_500_u64, 20..4_000_u64), 0..4);
    (0..450_u64, 0..450_u64, requests)
}

proptest! {
    /// Whoever was given a request before it read that the model leaves, its pod is there until that has ended.
    #[test]
    fn queue_18_no_request_that_crosses_the_word_to_leave_is_cut_off(
        seen in proptest::collection::vec(any_gateway(), 1..4),
    ) {
        let gateway = |(index, (hears_after, heard_after, requests)): (usize, _)| Gateway {
            name: format!("g{index}"),
            hears_after,
            heard_after,
            requests,
            in_flight: Vec::new(),
            wrote: None,
            known: None,
            writing: None,
        };
        let mut gateways: Vec<Gateway> = seen.into_iter().enumerate().map(gateway).collect();
        let mut scene = Scene::new();
        let mut released = None;
        for now in (0..BOUND).step_by(STEP) {
            for gateway in &mut gateways {
                gateway.live(now, scene.told);
            }
            let traffic = gateways.iter().filter_map(|gateway| gateway.known.clone()).collect();
            scene.demand.look(Some(&ModelStatus { traffic, ..ModelStatus::default() }), at(now));
            let verdict = scene.decide(now);
            if scene.released(&verdict, now) {
                released = Some(now);
                break;
            }
        }
        let lost: Vec<&Gateway> =
            gateways.iter().filter(|gateway| !gateway.in_flight.is_empty()).collect();
        prop_assert!(lost.is_empty(), "released at {released:?}: {lost:#?}");
        prop_assert!(released.is_some(), "it waits for ever: {gateways:#?}");
    }
}
