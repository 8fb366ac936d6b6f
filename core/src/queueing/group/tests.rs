//! The queue by example: each test is one promise to somebody who waits.

use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::activation::{Failure, Reason, Report};
use crate::queueing::effects::Notice;
use crate::queueing::terms::Backoff;
use crate::queueing::view::Phase;
use crate::scaling::Warmth;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(name: &str) -> ModelId {
    ModelId::new("default", name)
}

fn terms(name: &str) -> Terms {
    Terms {
        id: id(name),
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

/// A group, a clock, and a platform that does what it is told when the test says so.
struct World {
    group: Group,
    now: Moment,
    tickets: u64,
    effects: Effects,
}

impl World {
    fn new(members: Vec<Terms>) -> Self {
        Self::with(Policy::default(), members)
    }

    fn with(policy: Policy, members: Vec<Terms>) -> Self {
        let mut group = Group::new(policy, Capacity::One, 0);
        let effects = group.configure(Moment::ORIGIN, members);
        Self { group, now: Moment::ORIGIN, tickets: 0, effects }
    }

    fn ask(&mut self, name: &str) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let effects = self.group.arrive(self.now, ticket, &id(name));
        self.effects.extend(effects);
        ticket
    }

    fn pass(&mut self, duration: Duration) {
        self.now = self.now + duration;
        let effects = self.group.tick(self.now);
        self.effects.extend(effects);
    }

    fn report(&mut self, report: Report) {
        let effects = self.group.report(self.now, report, 1.0);
        self.effects.extend(effects);
    }

    fn started(&self, name: &str) -> Vec<InstanceId> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Start { instance, model, .. } if *model == id(name) => Some(*instance),
                _ => None,
            })
            .collect()
    }

    fn stopped(&self, name: &str) -> Vec<InstanceId> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Stop { instance, model } if *model == id(name) => Some(*instance),
                _ => None,
            })
            .collect()
    }

    fn ready(&mut self, name: &str) {
        let instance = *self.started(name).last().expect("it was started");
        self.report(Report::Ready { instance, address: address(instance) });
    }

    fn gone(&mut self, name: &str) {
        let instance = *self.stopped(name).last().expect("it was stopped");
        self.report(Report::Gone { instance });
    }

    fn fail(&mut self, name: &str) {
        let instance = *self.started(name).last().expect("it was started");
        let failure = Failure::new(Reason::DiedWhileLoading, "it died");
        self.report(Report::Failed { instance, failure });
    }

    /// Wakes `name` and has it serve.
    fn serving(&mut self, name: &str, load: Duration) -> BookingId {
        let ticket = self.ask(name);
        self.pass(load);
        self.ready(name);
        self.granted(ticket).expect("the request that woke it is served")
    }

    fn granted(&self, ticket: Ticket) -> Option<BookingId> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Grant { ticket: granted, booking, .. } if *granted == ticket => Some(*booking),
            _ => None,
        })
    }

    fn code(&self, ticket: Ticket) -> Option<&'static str> {
        self.rejection(ticket).map(Rejection::code)
    }

    fn rejection(&self, ticket: Ticket) -> Option<&Rejection> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Reject { ticket: rejected, rejection } if *rejected == ticket => {
                Some(rejection)
            }
            _ => None,
        })
    }

    fn finish(&mut self, booking: BookingId) {
        let effects = self.group.finish(self.now, booking);
        self.effects.extend(effects);
    }

    fn phase(&self, name: &str) -> Phase {
        let view = self.group.view(self.now);
        view.into_iter().find(|member| member.id == id(name)).expect("it is a member").phase
    }

    fn told(&self, wanted: impl Fn(&Notice) -> bool) -> bool {
        self.effects
            .iter()
            .any(|effect| matches!(effect, Effect::Tell { notice, .. } if wanted(notice)))
    }
}

fn address(instance: InstanceId) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], u16::try_from(10_000 + instance.0 % 50_000).unwrap_or(1)))
}

#[test]
fn queue_15_one_activation_however_many_wait() {
    let mut world = World::new(vec![Terms { slots: None, ..terms("a") }]);
    let tickets: Vec<_> = (0..100).map(|_| world.ask("a")).collect();
    assert_eq!(world.started("a").len(), 1);
    world.ready("a");
    assert!(tickets.iter().all(|ticket| world.granted(*ticket).is_some()));
}

#[test]
fn waiters_go_out_in_order_at_the_pace_of_the_slots() {
    let mut world = World::new(vec![terms("a")]);
    let tickets: Vec<_> = (0..4).map(|_| world.ask("a")).collect();
    world.ready("a");
    assert!(world.granted(tickets[1]).is_some());
    assert!(world.granted(tickets[2]).is_none(), "it has two slots");
    world.finish(world.granted(tickets[0]).expect("it was granted"));
    assert!(world.granted(tickets[2]).is_some());
    assert!(world.granted(tickets[3]).is_none());
}

#[test]
fn queue_17_the_bound_holds_for_a_cold_and_for_a_warm_model() {
    let mut world = World::new(vec![Terms { slots: Some(1), max_queue: Some(10), ..terms("a") }]);
    let cold: Vec<_> = (0..30).map(|_| world.ask("a")).collect();
    let full = |world: &World, tickets: &[Ticket]| {
        tickets.iter().filter(|ticket| world.code(**ticket) == Some("queue_full")).count()
    };
    assert_eq!(full(&world, &cold), 20);
    world.ready("a");
    let warm: Vec<_> = (0..30).map(|_| world.ask("a")).collect();
    assert_eq!(full(&world, &warm), 29, "nine still wait of those that came first");
    let rejection = world.rejection(warm[29]).expect("it was refused");
    assert!(rejection.retry_after().is_some());
}

#[test]
fn queue_17_a_bound_of_zero_still_wakes_a_cold_model() {
    let mut world = World::new(vec![Terms { max_queue: Some(0), ..terms("a") }]);
    let first = world.ask("a");
    assert_eq!(world.code(first), Some("queue_full"));
    assert_eq!(world.started("a").len(), 1);
    world.ready("a");
    let second = world.ask("a");
    assert!(world.granted(second).is_some());
}

#[test]
fn queue_17_a_bound_of_zero_still_swaps_a_cold_model_in() {
    let mut world = World::new(vec![terms("a"), Terms { max_queue: Some(0), ..terms("b") }]);
    let used = world.serving("a", secs(1));
    let refused = world.ask("b");
    assert_eq!(world.code(refused), Some("queue_full"));
    world.pass(secs(1));
    world.finish(used);
    assert_eq!(world.stopped("a").len(), 1, "the demand outlives the request that made it");
    world.gone("a");
    world.ready("b");
    let retry = world.ask("b");
    assert!(world.granted(retry).is_some());
}

#[test]
fn a_demand_without_a_request_is_forgotten_in_time() {
    let mut world = World::new(vec![terms("a"), Terms { max_queue: Some(0), ..terms("b") }]);
    world.serving("a", secs(1));
    world.ask("b");
    world.pass(secs(60));
    let next = world.ask("a");
    assert!(world.granted(next).is_some(), "a yields no longer");
}

#[test]
fn queue_17_a_changed_bound_loses_nobody() {
    let mut world = World::new(vec![Terms { slots: Some(1), ..terms("a") }]);
    let tickets: Vec<_> = (0..5).map(|_| world.ask("a")).collect();
    let lowered = Terms { slots: Some(1), max_queue: Some(1), ..terms("a") };
    let effects = world.group.configure(world.now, vec![lowered]);
    world.effects.extend(effects);
    assert!(tickets.iter().all(|ticket| world.code(*ticket).is_none()));
    let late = world.ask("a");
    assert_eq!(world.code(late), Some("queue_full"));
}

#[test]
fn a_client_that_leaves_frees_its_place_and_its_demand() {
    let mut world = World::new(vec![Terms { max_queue: Some(1), ..terms("a") }]);
    let first = world.ask("a");
    let effects = world.group.leave(world.now, first);
    world.effects.extend(effects);
    let second = world.ask("a");
    assert!(world.code(second).is_none());
    world.ready("a");
    assert!(world.granted(first).is_none());
    assert!(world.granted(second).is_some());
}

#[test]
fn a_request_that_waited_too_long_is_told_and_its_load_goes_on() {
    let mut world = World::new(vec![terms("a")]);
    let first = world.ask("a");
    world.pass(secs(60));
    assert_eq!(world.code(first), Some("activation_timeout"));
    assert_eq!(world.phase("a"), Phase::Loading);
    let retry = world.ask("a");
    world.pass(secs(5));
    world.ready("a");
    assert!(world.granted(retry).is_some());
    assert_eq!(world.started("a").len(), 1, "the retry joined the load");
}

#[test]
fn a_load_known_to_outlast_the_deadline_is_begun_and_said_so() {
    let mut world = World::new(vec![terms("a")]);
    let first = world.serving("a", secs(50));
    world.finish(first);
    world.pass(secs(400));
    world.gone("a");
    let short = Terms { cold_start_timeout: Some(secs(20)), generation: 1, ..terms("a") };
    world.group.policy.queue_timeout = secs(20);
    let effects = world.group.configure(world.now, vec![short]);
    world.effects.extend(effects);
    let hopeless = world.ask("a");
    assert_eq!(world.code(hopeless), Some("not_before_deadline"));
    let rejection = world.rejection(hopeless).expect("it was refused");
    assert_eq!(rejection.retry_after(), Some(secs(50)));
    assert_eq!(world.phase("a"), Phase::Loading);
}

#[test]
fn queue_20_every_activation_of_twenty_serves_its_request() {
    let mut world = World::new(vec![terms("a")]);
    for _ in 0..20 {
        let booking = world.serving("a", secs(1));
        world.finish(booking);
        world.pass(secs(300));
        assert_eq!(world.phase("a"), Phase::Stopping);
        world.gone("a");
        assert_eq!(world.phase("a"), Phase::Idle);
    }
    assert_eq!(world.started("a").len(), 20);
}

#[test]
fn queue_09_a_request_at_the_moment_of_sleep_is_served() {
    let mut world = World::new(vec![terms("a")]);
    let booking = world.serving("a", secs(1));
    world.finish(booking);
    world.pass(secs(300));
    let late = world.ask("a");
    assert!(world.granted(late).is_none(), "its engine is ending");
    world.gone("a");
    world.ready("a");
    assert!(world.granted(late).is_some());
}

#[test]
fn queue_18_a_swap_lets_the_leaving_model_finish() {
    let mut world = World::new(vec![terms("a"), terms("b")]);
    let stream = world.serving("a", secs(1));
    world.pass(secs(10));
    let waiting = world.ask("b");
    world.pass(secs(1));
    let behind = world.ask("a");
    world.pass(secs(30));
    assert!(world.stopped("a").is_empty(), "a is streaming");
    assert!(world.granted(behind).is_none(), "a's new request queues behind b's");
    world.finish(stream);
    assert_eq!(world.stopped("a").len(), 1);
    assert!(world.started("b").is_empty(), "b starts when a is gone");
    world.gone("a");
    world.ready("b");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn queue_18_a_higher_one_waits_for_the_drain_limit_at_most() {
    let patient = Some(secs(120));
    let high = Terms { priority: 200, cold_start_timeout: patient, ..terms("high") };
    let mut world = World::new(vec![terms("low"), high]);
    let stream = world.serving("low", secs(1));
    world.pass(secs(10));
    world.ask("high");
    assert_eq!(world.phase("low"), Phase::Draining);
    world.pass(secs(59));
    assert!(world.stopped("low").is_empty());
    world.pass(secs(1));
    assert_eq!(world.stopped("low").len(), 1);
    assert!(world.told(|notice| *notice == Notice::CutOff { in_flight: 1 }));
    world.finish(stream);
    world.gone("low");
    assert_eq!(world.started("high").len(), 1);
}

#[test]
fn a_drain_is_called_off_when_the_one_it_was_for_has_left() {
    let mut world = World::new(vec![terms("low"), Terms { priority: 200, ..terms("high") }]);
    world.serving("low", secs(1));
    let high = world.ask("high");
    assert_eq!(world.phase("low"), Phase::Draining);
    let effects = world.group.leave(world.now, high);
    world.effects.extend(effects);
    assert_eq!(world.phase("low"), Phase::Ready);
    let next = world.ask("low");
    assert!(world.granted(next).is_some());
}

#[test]
fn a_lower_one_behind_a_pinned_higher_one_is_told_at_once() {
    let high = Terms { priority: 200, warmth: Warmth::Pinned, ..terms("high") };
    let mut world = World::new(vec![high, terms("low")]);
    world.ready("high");
    let low = world.ask("low");
    assert_eq!(world.code(low), Some("held_by_higher_priority"));
}

#[test]
fn queue_05_a_load_that_dies_is_told_at_once_and_tried_again_later() {
    let mut world = World::new(vec![terms("a")]);
    for attempt in 0..3_u32 {
        let waiting = world.ask("a");
        world.fail("a");
        assert_eq!(world.code(waiting), Some("activation_failed"));
        let meanwhile = world.ask("a");
        assert_eq!(world.code(meanwhile), Some("activation_failed"), "told, not queued");
        world.pass(secs(1 << attempt));
    }
    let waiting = world.ask("a");
    world.ready("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn queue_05_with_backoff_the_waiters_outlast_the_retries() {
    let backoff = Backoff { max_retries: 3, initial_wait: secs(5), max_wait: secs(30) };
    let policy = Policy { backoff: Some(backoff), ..Policy::default() };
    let mut world = World::with(policy, vec![terms("a")]);
    let waiting = world.ask("a");
    for wait in [5, 10, 20] {
        world.pass(secs(59));
        world.fail("a");
        assert!(world.code(waiting).is_none());
        world.pass(secs(wait));
    }
    world.pass(secs(59));
    world.ready("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn a_model_that_crashes_while_serving_is_started_again_for_those_who_wait() {
    let mut world = World::new(vec![Terms { slots: Some(1), ..terms("a") }]);
    let lost = world.serving("a", secs(1));
    let waiting = world.ask("a");
    world.fail("a");
    assert_eq!(world.started("a").len(), 2);
    world.finish(lost);
    world.ready("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn queue_21_the_waiters_of_a_removed_model_are_told() {
    let mut world = World::new(vec![terms("a")]);
    let waiting = world.ask("a");
    let effects = world.group.configure(world.now, vec![]);
    world.effects.extend(effects);
    assert_eq!(world.code(waiting), Some("model_not_found"));
    assert_eq!(world.stopped("a").len(), 1);
    world.gone("a");
    assert!(world.group.spent());
}

#[test]
fn an_edited_model_finishes_its_streams_and_serves_new_requests_afresh() {
    let mut world = World::new(vec![terms("a")]);
    let stream = world.serving("a", secs(1));
    let edited = Terms { generation: 2, ..terms("a") };
    let effects = world.group.configure(world.now, vec![edited]);
    world.effects.extend(effects);
    let next = world.ask("a");
    world.pass(secs(50));
    assert!(world.stopped("a").is_empty(), "a stream is never broken by an edit");
    assert!(world.granted(next).is_none());
    world.finish(stream);
    world.gone("a");
    world.ready("a");
    assert!(world.granted(next).is_some());
}

#[test]
fn an_outdated_engine_that_keeps_another_model_out_is_cut_off_at_its_drain_limit() {
    let mut world = World::new(vec![terms("a"), terms("b")]);
    let stream = world.serving("a", secs(1));
    let edited = Terms { generation: 2, ..terms("a") };
    let effects = world.group.configure(world.now, vec![edited, terms("b")]);
    world.effects.extend(effects);
    world.pass(secs(1000));
    assert!(world.stopped("a").is_empty(), "it is in nobody's way");
    world.group.policy.cold_start_timeout = secs(300);
    let waiting = world.ask("b");
    world.pass(secs(60));
    assert_eq!(world.stopped("a").len(), 1);
    world.finish(stream);
    world.gone("a");
    world.ready("b");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn an_engine_that_answers_is_forgiven_its_failed_loads() {
    let mut world = World::new(vec![terms("a")]);
    for wait in [1, 2, 4] {
        world.ask("a");
        world.fail("a");
        world.pass(secs(wait));
    }
    let booking = world.serving("a", secs(1));
    world.finish(booking);
    world.pass(secs(300));
    world.gone("a");
    world.ask("a");
    world.fail("a");
    world.pass(secs(1));
    let after = world.ask("a");
    assert!(world.code(after).is_none(), "left alone for one second again, not for eight");
}

#[test]
fn a_preloaded_model_stays_up_until_it_was_used_once() {
    let mut world = World::new(vec![Terms { preload: true, ..terms("a") }]);
    assert_eq!(world.started("a").len(), 1);
    world.ready("a");
    world.pass(secs(10_000));
    assert_eq!(world.phase("a"), Phase::Ready);
    let used = world.ask("a");
    world.finish(world.granted(used).expect("it serves"));
    world.pass(secs(300));
    assert_eq!(world.phase("a"), Phase::Stopping);
}

#[test]
fn queue_02_a_booking_of_a_client_that_left_is_given_back() {
    let mut world = World::new(vec![Terms { slots: Some(1), ..terms("a") }]);
    let booking = world.serving("a", secs(1));
    let next = world.ask("a");
    world.finish(booking);
    let unclaimed = world.granted(next).expect("it was granted as its client left");
    let effects = world.group.leave(world.now, next);
    world.effects.extend(effects);
    world.finish(unclaimed);
    world.finish(unclaimed);
    let after = world.ask("a");
    assert!(world.granted(after).is_some());
    assert_eq!(world.group.view(world.now)[0].in_flight, 1);
}

#[test]
fn two_equals_asked_in_turn_just_work() {
    let mut world = World::new(vec![terms("a"), terms("b")]);
    let first = world.serving("a", secs(2));
    world.finish(first);
    for (next, leaving) in [("b", "a"), ("a", "b"), ("b", "a")] {
        let ticket = world.ask(next);
        world.pass(secs(2));
        world.gone(leaving);
        world.pass(secs(2));
        world.ready(next);
        world.finish(world.granted(ticket).expect("it is served"));
    }
}
