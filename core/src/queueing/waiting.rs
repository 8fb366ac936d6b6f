//! Requests that wait for one model, oldest first, each with its deadline. Whoever owns the line
//! answers those that are taken out of it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::ids::Ticket;
use crate::moment::Moment;

/// A request in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) since: Moment,
    pub(super) deadline: Moment,
}

/// Demand without a waiting request: counts until the load begins, or until `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) since: Moment,
    pub(super) until: Moment,
}

/// The line.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(VecDeque<Waiter>);

impl Waiting {
    /// `ticket` waits from now on, for at most `patience`.
    pub(super) fn join(&mut self, now: Moment, ticket: Ticket, patience: Duration) {
        self.0.push_back(Waiter { ticket, since: now, deadline: now + patience });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose turn it is.
    pub(super) fn first(&self) -> Option<Ticket> {
        self.at(0)
    }

    /// Who stands behind so many others.
    pub(super) fn at(&self, place: usize) -> Option<Ticket> {
        self.0.get(place).map(|waiter| waiter.ticket)
    }

    /// The first one has been served.
    pub(super) fn advance(&mut self) {
        self.remove(0);
    }

    /// Who stands there has been served.
    pub(super) fn remove(&mut self, place: usize) {
        self.0.remove(place);
    }

    /// Since when the first one waits.
    pub(super) fn since(&self) -> Option<Moment> {
        self.0.front().map(|waiter| waiter.since)
    }

    /// The next deadline of anybody.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.0.iter().map(|waiter| waiter.deadline).min()
    }

    /// The client of `ticket` has left.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.0.retain(|waiter| waiter.ticket != ticket);
    }

    /// Whether `ticket`, the last to come, is one more than `limit` lets wait; if so it is out.
    pub(super) fn turn_away(&mut self, ticket: Ticket, limit: u32) -> bool {
        let over = self.0.len() > limit as usize;
        let last = self.0.back().is_some_and(|waiter| waiter.ticket == ticket);
        if over && last {
            self.0.pop_back();
        }
        over && last
    }

    /// Takes out everybody.
    pub(super) fn dissolve(&mut self) -> impl Iterator<Item = Ticket> {
        self.0.drain(..).map(|waiter| waiter.ticket)
    }

    /// Takes out those whose deadline has come.
    pub(super) fn take_due(&mut self, now: Moment) -> Vec<Waiter> {
        self.take(|waiter| now >= waiter.deadline)
    }

    /// Takes out those whose deadline comes before `ready`.
    pub(super) fn take_hopeless(&mut self, ready: Moment) -> Vec<Waiter> {
        self.take(|waiter| ready > waiter.deadline)
    }

    fn take(&mut self, out: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        if !self.0.iter().any(&out) {
            return Vec::new();
        }
        let (out, stay) = self.0.iter().copied().partition(|waiter| out(waiter));
        self.0 = stay;
        out.into()
    }
}
