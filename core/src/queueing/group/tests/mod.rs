//! The queue by example: each test is one promise to somebody who waits.

mod edits;
mod failures;
mod swaps;
mod waiting;

use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::activation::{Failure, Reason, Report};
use crate::queueing::SwapWait;
use crate::queueing::effects::Notice;
use crate::queueing::terms::Backoff;
use crate::queueing::terms::tests::terms;
use crate::queueing::view::Phase;
use crate::scaling::Warmth;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(name: &str) -> ModelId {
    ModelId::new("default", name)
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
