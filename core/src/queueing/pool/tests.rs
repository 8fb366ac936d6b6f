//! Pools in tables: a world that plays the cluster around one pool.

use std::net::SocketAddr;

use flexinfer_crds::model::Phase;

use super::*;
use crate::activation::{Failure, Reason};
use crate::scaling::Warmth;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn terms() -> Terms {
    Terms {
        id: ModelId::new("default", "a"),
        generation: 1,
        priority: 100,
        force_promotion: false,
        warmth: Warmth::None,
        preload: false,
        idle_timeout: secs(300),
        swap_cooldown: secs(300),
        vram_mib: None,
        drain_limit: secs(60),
        cold_start_timeout: None,
        slots: Some(2),
        max_queue: None,
        routing: None,
    }
}

fn listed(name: &str) -> Listed {
    let port = 1000 + u16::from(name.as_bytes()[0]);
    Listed {
        id: EndpointId(name.into()),
        address: SocketAddr::from(([10, 0, 0, 1], port)),
        ready: true,
        leaving: false,
    }
}

fn standing(phase: Phase) -> Standing {
    Standing { phase: Some(phase), ..Standing::default() }
}

struct World {
    pool: Pool,
    now: Moment,
    tickets: u64,
    effects: Vec<PoolEffect>,
}

impl World {
    fn new(terms: Terms) -> Self {
        let pool = Pool::new(Policy::default(), terms, 0);
        Self { pool, now: Moment::ORIGIN + secs(1000), tickets: 0, effects: Vec::new() }
    }

    /// Serving at these endpoints.
    fn serving(terms: Terms, names: &[&str]) -> Self {
        let mut world = Self::new(terms);
        world.list(names);
        for name in names {
            world.answer(name);
        }
        world.act(|pool, now| pool.stand(now, standing(Phase::Ready)));
        world
    }

    fn act(&mut self, event: impl FnOnce(&mut Pool, Moment) -> Vec<PoolEffect>) {
        let effects = event(&mut self.pool, self.now);
        self.effects.extend(effects);
    }

    fn ask(&mut self) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.act(|pool, now| pool.arrive(now, ticket, Wish::default()));
        ticket
    }

    fn list(&mut self, names: &[&str]) {
        let listed = names.iter().map(|name| listed(name)).collect();
        self.act(|pool, now| pool.list(now, listed));
    }

    fn answer(&mut self, name: &str) {
        let Listed { id, address, .. } = listed(name);
        self.act(|pool, now| pool.answered(now, &id, address));
    }

    fn finish(&mut self, booking: BookingId) {
        self.act(|pool, now| pool.finish(now, booking));
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(wake) = self.pool.wake_at(self.now).filter(|wake| *wake <= end) {
            assert!(wake > self.now);
            self.now = wake;
            self.act(Pool::tick);
        }
        self.now = end;
        self.act(Pool::tick);
    }

    fn granted(&self, ticket: Ticket) -> Option<(BookingId, u16)> {
        self.effects.iter().find_map(|effect| match effect {
            PoolEffect::Grant { ticket: granted, booking, address, .. } if *granted == ticket => {
                Some((*booking, address.port()))
            }
            _ => None,
        })
    }

    fn rejection(&self, ticket: Ticket) -> Option<&Rejection> {
        self.effects.iter().find_map(|effect| match effect {
            PoolEffect::Reject { ticket: rejected, rejection } if *rejected == ticket => {
                Some(rejection)
            }
            _ => None,
        })
    }

    fn code(&self, ticket: Ticket) -> Option<&'static str> {
        self.rejection(ticket).map(Rejection::code)
    }

    fn probes(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, PoolEffect::Probe { .. })).count()
    }

    /// What was reported so far, each as in flight, waiting and peak.
    fn reports(&self) -> Vec<[u32; 3]> {
        let report = |effect: &PoolEffect| match effect {
            PoolEffect::Report { traffic, .. } => {
                Some([traffic.in_flight, traffic.waiting, traffic.peak])
            }
            _ => None,
        };
        self.effects.iter().filter_map(report).collect()
    }

    /// How many reports said that engines get nothing more.
    fn promises(&self) -> usize {
        let promise = |effect: &&PoolEffect| matches!(effect, PoolEffect::Report { traffic, .. } if traffic.draining);
        self.effects.iter().filter(promise).count()
    }

    fn arrived(&mut self) {
        self.act(|pool, now| pool.reported(now, true, 0.5));
    }
}

#[test]
fn route_12_an_endpoint_gets_requests_once_it_answered_itself() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    world.list(&["a"]);
    assert!(world.granted(waiting).is_none(), "it is only listed");
    assert_eq!(world.probes(), 1);
    world.answer("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn requests_go_to_each_endpoint_in_turn_and_wait_when_all_are_full() {
    let mut world = World::serving(terms(), &["a", "b", "c"]);
    let tickets: Vec<_> = (0..7).map(|_| world.ask()).collect();
    let ports: Vec<_> =
        tickets.iter().map(|ticket| world.granted(*ticket).map(|(_, port)| port)).collect();
    let (a, b, c) = (Some(1097), Some(1098), Some(1099));
    assert_eq!(ports, [a, b, c, a, b, c, None]);
    world.finish(world.granted(tickets[1]).expect("granted").0);
    assert_eq!(world.granted(tickets[6]).map(|(_, port)| port), b);
}

#[test]
fn queue_09_an_endpoint_that_leaves_takes_nothing_new_and_finishes_what_it_has() {
    let mut world = World::serving(terms(), &["a", "b"]);
    let first = world.ask();
    let leaving = Listed { leaving: true, ..listed("a") };
    world.act(|pool, now| pool.list(now, vec![leaving, listed("b")]));
    let (next, after) = (world.ask(), world.ask());
    assert_eq!(world.granted(next).map(|(_, port)| port), Some(1098));
    assert_eq!(world.granted(after).map(|(_, port)| port), Some(1098));
    assert_eq!(world.pool.view().in_flight, 3);
    world.list(&["b"]);
    assert_eq!(world.pool.view().in_flight, 3, "what is on it is not forgotten");
    world.finish(world.granted(first).expect("granted").0);
    assert_eq!(world.pool.view().in_flight, 2);
}

#[test]
fn queue_20_an_address_that_another_pod_got_is_asked_anew() {
    let mut world = World::serving(terms(), &["a"]);
    let successor = Listed { id: EndpointId("b".into()), ..listed("a") };
    world.act(|pool, now| pool.list(now, vec![successor.clone()]));
    let early = world.ask();
    assert!(world.granted(early).is_none());
    world.act(|pool, now| pool.answered(now, &successor.id, successor.address));
    assert!(world.granted(early).is_some());
}

#[test]
fn an_endpoint_that_took_no_connection_is_asked_before_it_gets_anything() {
    let mut world = World::serving(terms(), &["a"]);
    let first = world.ask();
    let (booking, _) = world.granted(first).expect("granted");
    let before = world.probes();
    world.act(|pool, now| pool.unreachable(now, booking));
    world.act(|pool, now| pool.unreachable(now, booking));
    world.finish(booking);
    assert_eq!(world.probes(), before + 1);
    let again = world.ask();
    assert!(world.granted(again).is_none());
    world.answer("a");
    assert!(world.granted(again).is_some());
}

#[test]
fn an_endpoint_that_took_no_connection_while_it_left_is_asked_if_it_stays() {
    let mut world = World::serving(terms(), &["a"]);
    let first = world.ask();
    let (booking, _) = world.granted(first).expect("granted");
    let leaving = Listed { leaving: true, ..listed("a") };
    world.act(|pool, now| pool.list(now, vec![leaving]));
    world.act(|pool, now| pool.unreachable(now, booking));
    world.finish(booking);
    let before = world.probes();
    world.list(&["a"]);
    assert_eq!(world.probes(), before + 1);
    let again = world.ask();
    assert!(world.granted(again).is_none());
    world.answer("a");
    assert!(world.granted(again).is_some());
}

#[test]
fn queue_18_an_engine_that_was_stopped_gets_nothing_while_it_is_listed_still() {
    let mut world = World::serving(terms(), &["a"]);
    let draining = Standing { draining: true, ..standing(Phase::Ready) };
    world.act(|pool, now| pool.stand(now, draining));
    let waiting = world.ask();
    let queued = Standing { away: true, ..standing(Phase::Pending) };
    world.act(|pool, now| pool.stand(now, queued));
    world.list(&["a"]);
    world.answer("a");
    assert!(world.granted(waiting).is_none(), "it is being stopped");
    // Its successor serves as soon as it answers, whenever its controller is heard.
    world.list(&["a", "b"]);
    world.answer("b");
    let (_, port) = world.granted(waiting).expect("granted");
    assert_eq!(port, listed("b").address.port());
    // Should it be there in truth, it is asked.
    let before = world.probes();
    world.act(|pool, now| pool.stand(now, standing(Phase::Loading)));
    assert_eq!(world.probes(), before + 1);
}

#[test]
fn an_endpoint_whose_readiness_falls_is_asked_and_one_moving_between_lists_is_not() {
    let mut world = World::serving(terms(), &["a"]);
    let before = world.probes();
    world.list(&["a"]);
    assert_eq!(world.probes(), before);
    let fallen = Listed { ready: false, ..listed("a") };
    world.act(|pool, now| pool.list(now, vec![fallen.clone()]));
    world.act(|pool, now| pool.list(now, vec![fallen]));
    assert_eq!(world.probes(), before + 1, "asked once");
}

#[test]
fn a_draining_model_keeps_new_requests_in_its_queue() {
    let mut world = World::serving(terms(), &["a"]);
    let draining = Standing { draining: true, ..standing(Phase::Ready) };
    world.act(|pool, now| pool.stand(now, draining));
    let waiting = world.ask();
    assert!(world.granted(waiting).is_none());
    world.act(|pool, now| pool.stand(now, standing(Phase::Ready)));
    assert!(world.granted(waiting).is_some());
}

#[test]
fn queue_18_each_time_a_model_leaves_its_engines_are_promised_nothing_more() {
    let mut world = World::serving(terms(), &["a"]);
    let served = world.ask();
    assert!(world.granted(served).is_some());
    world.arrived();
    for time in 1..=2 {
        world.pass(secs(1));
        assert_eq!(world.promises(), time - 1);
        world.act(|pool, now| {
            pool.stand(now, Standing { draining: true, ..standing(Phase::Ready) })
        });
        world.pass(secs(1));
        assert_eq!(world.promises(), time, "although nothing else has changed");
        world.arrived();
        world.act(|pool, now| pool.stand(now, standing(Phase::Ready)));
    }
}

#[test]
fn queue_11_those_who_wait_are_told_at_once_of_a_terminal_reason() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    let failed = Standing::failed(Failure::new(Reason::ImagePullFailed, "no such image"));
    world.act(|pool, now| pool.stand(now, failed));
    assert_eq!(world.code(waiting), Some("activation_failed"));
    let late = world.ask();
    assert!(world.rejection(late).is_some_and(|told| told.retry_after().is_some()));
    world.arrived();
    world.pass(secs(1));
    assert_eq!(world.reports().last().map(|report| report[1]), Some(1), "it is still demand");
}

#[test]
fn those_behind_a_pinned_model_of_higher_priority_are_told_at_once() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    let held_by = Some(ModelId::new("default", "high"));
    world.act(|pool, now| pool.stand(now, Standing { held_by, ..standing(Phase::Pending) }));
    assert_eq!(world.code(waiting), Some("held_by_higher_priority"));
}

#[test]
fn who_was_not_served_is_told_when_the_gpu_is_free_at_the_earliest() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    let not_before = Some(world.now + secs(200));
    world.act(|pool, now| pool.stand(now, Standing { not_before, ..standing(Phase::Pending) }));
    world.pass(secs(60));
    let told = world.rejection(waiting).unwrap();
    assert_eq!((told.code(), told.retry_after()), ("activation_timeout", Some(secs(140))));
}

#[test]
fn a_failure_does_not_close_an_endpoint_that_serves() {
    let mut world = World::serving(terms(), &["a"]);
    let failed = Standing::failed(Failure::new(Reason::CrashLoop, "the other one"));
    world.act(|pool, now| pool.stand(now, failed));
    let served = world.ask();
    assert!(world.granted(served).is_some());
}

#[test]
fn queue_15_a_thousand_requests_for_a_cold_model_are_one_write_at_a_time() {
    let mut world = World::new(Terms { max_queue: Some(1000), slots: None, ..terms() });
    let tickets: Vec<_> = (0..1000).map(|_| world.ask()).collect();
    assert_eq!(world.reports(), [[0, 1, 1]]);
    world.act(|pool, now| pool.reported(now, false, 0.5));
    assert_eq!(world.reports().len(), 1, "a refused write is not repeated at once");
    world.pass(secs(2));
    assert_eq!(world.reports(), [[0, 1, 1], [0, 1000, 1000]]);
    world.arrived();
    world.list(&["a"]);
    world.answer("a");
    assert!(tickets.iter().all(|ticket| world.granted(*ticket).is_some()));
}

#[test]
fn queue_17_the_bound_holds_and_a_bound_of_zero_still_wakes() {
    let mut world = World::new(Terms { max_queue: Some(0), ..terms() });
    let first = world.ask();
    assert_eq!(world.code(first), Some("queue_full"));
    assert_eq!(world.reports(), [[0, 1, 1]]);
    world.list(&["a"]);
    world.answer("a");
    let second = world.ask();
    assert!(world.granted(second).is_some());
}

#[test]
fn traffic_that_comes_and_goes_writes_no_more_than_renewals() {
    let mut world = World::serving(terms(), &["a"]);
    for _ in 0..600 {
        let ticket = world.ask();
        world.pass(Duration::from_millis(50));
        world.finish(world.granted(ticket).expect("granted").0);
        world.pass(Duration::from_millis(50));
        world.arrived();
    }
    // A minute: the first entry, and one at every thirtieth second.
    assert!(world.reports().len() <= 3, "{:?}", world.reports());
    assert!(world.reports().iter().all(|report| report[2] == 1));
}

#[test]
fn an_idle_model_is_reported_idle_once_and_then_never_again() {
    let mut world = World::serving(terms(), &["a"]);
    let ticket = world.ask();
    world.arrived();
    world.finish(world.granted(ticket).expect("granted").0);
    for _ in 0..1000 {
        world.pass(secs(10));
        world.arrived();
    }
    let (last, count) = (world.reports().last().copied(), world.reports().len());
    assert_eq!((last, count), (Some([0, 0, 0]), 2));
}

#[test]
fn what_the_controller_waits_for_is_written_at_once() {
    let mut world = World::serving(terms(), &["a"]);
    let ticket = world.ask();
    world.arrived();
    world.pass(secs(1));
    world.act(|pool, now| pool.contend(now, true));
    assert_eq!(world.reports(), [[1, 0, 1]]);
    world.finish(world.granted(ticket).expect("granted").0);
    assert_eq!(world.reports(), [[1, 0, 1], [0, 0, 1]]);
}

#[test]
fn queue_21_the_waiters_of_a_removed_model_are_told() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    world.act(Pool::remove);
    assert_eq!(world.code(waiting), Some("model_not_found"));
    let late = world.ask();
    assert_eq!(world.code(late), Some("model_not_found"));
    world.arrived();
    world.pass(secs(100));
    assert_eq!(world.reports().len(), 1, "nothing is said of what is gone");
}

#[test]
fn a_request_that_waited_too_long_is_told_why() {
    let mut world = World::new(terms());
    let cold = world.ask();
    world.pass(secs(60));
    assert_eq!(world.code(cold), Some("activation_timeout"));
    let mut world = World::serving(Terms { slots: Some(1), ..terms() }, &["a"]);
    world.ask();
    let second = world.ask();
    world.pass(secs(60));
    assert_eq!(world.code(second), Some("queue_timeout"));
}
