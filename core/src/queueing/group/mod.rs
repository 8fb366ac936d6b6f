//! The machine itself: its state, its events, and when it wants to be woken.

mod reports;
mod settle;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::effects::{Effect, Effects};
use super::line::{Engine, Line};
use super::swap_wait::Leave;
use super::terms::{Policy, Terms};
use super::view::MemberView;
use super::waiting::Asked;
use crate::ids::{BookingId, InstanceId, ModelId, Ticket};
use crate::moment::Moment;
use crate::rejection::Rejection;
use crate::sharing::Capacity;

/// Which engine each slot is on.
type Bookings = HashMap<BookingId, (ModelId, InstanceId), FixedState>;

/// A sharing group: its members, their queues and their engines.
#[derive(Debug)]
pub struct Group {
    policy: Policy,
    capacity: Capacity,
    lines: BTreeMap<ModelId, Line>,
    bookings: Bookings,
    next_booking: u64,
    /// Numbers for instances come from a range of this group's own, so that they stay unique.
    next_instance: u64,
    /// How a resident last had to leave for another, until that other was started.
    swap: Option<Leave>,
    /// What [`Group::wake_at`] answers.
    wake: Option<Moment>,
}

impl Group {
    /// An empty group. `first_instance` starts the range of this group's instance numbers.
    pub fn new(policy: Policy, capacity: Capacity, first_instance: u64) -> Self {
        Self {
            policy,
            capacity,
            lines: BTreeMap::new(),
            bookings: Bookings::default(),
            next_booking: 0,
            next_instance: first_instance,
            swap: None,
            wake: None,
        }
    }

    /// The members are now these. Who is no longer among them takes nothing new, its waiters are
    /// told, and it ends when it has finished what it serves; an edited one likewise ends and is
    /// started afresh when needed.
    pub fn configure(&mut self, now: Moment, members: Vec<Terms>) -> Effects {
        let mut effects = Effects::new();
        for line in self.lines.values_mut() {
            line.removed = !members.iter().any(|terms| terms.id == line.terms.id);
        }
        for terms in members {
            let line =
                self.lines.entry(terms.id.clone()).or_insert_with(|| Line::new(terms.clone()));
            if line.terms.generation != terms.generation {
                line.bar = None;
                line.failures = 0;
                line.last_load = None;
            }
            line.terms = terms;
        }
        for line in self.lines.values_mut().filter(|line| line.removed) {
            let model = line.terms.id.clone();
            effects.extend(line.waiting.dissolve().map(|ticket| Effect::Reject {
                ticket,
                rejection: Rejection::ModelRemoved { model: model.clone() },
            }));
        }
        self.settle(now, &mut effects);
        effects
    }

    /// A request for `model` has arrived. Exactly one of `Grant` and `Reject` follows for its
    /// ticket, now or later, unless it leaves.
    pub fn arrive(&mut self, now: Moment, ticket: Ticket, model: &ModelId) -> Effects {
        let mut effects = Effects::new();
        let Some(line) = self.lines.get_mut(model).filter(|line| !line.removed) else {
            let rejection = Rejection::ModelRemoved { model: model.clone() };
            effects.push(Effect::Reject { ticket, rejection });
            return effects;
        };
        // 1. A free slot on a model that serves and has no queue: nothing else can change.
        if line.waiting.is_empty()
            && grant_one(line, &mut self.bookings, &mut self.next_booking, ticket, &mut effects)
        {
            return effects;
        }
        // 2. A model that failed a moment ago says why, instead of letting the request wait for
        //    the same again.
        if let Some(bar) = line.bar.as_ref().filter(|bar| now < bar.until && !bar.retrying) {
            let rejection = Rejection::ActivationFailed {
                model: model.clone(),
                failure: bar.failure.clone(),
                retry_in: Some(now.until(bar.until)),
            };
            effects.push(Effect::Reject { ticket, rejection });
            return effects;
        }
        // 3. It waits, and whatever that demand sets off is set off.
        let patience = if line.open().is_some() {
            self.policy.queue_timeout
        } else {
            self.policy.cold_wait(&line.terms)
        };
        line.waiting.join(now, ticket, patience);
        self.settle(now, &mut effects);
        // 4. Only then is the bound applied: with a bound of zero a cold model is still woken.
        self.bound(now, model, ticket, &mut effects);
        effects
    }

    fn bound(&mut self, now: Moment, model: &ModelId, ticket: Ticket, effects: &mut Effects) {
        let Some(line) = self.lines.get_mut(model) else { return };
        let limit = line.terms.max_queue.unwrap_or(self.policy.max_queue);
        if line.waiting.turn_away(ticket, limit) {
            if line.waiting.is_empty() && matches!(line.engine, Engine::Absent) {
                // Nobody may wait, and yet it shall be woken once the GPU is free.
                let until = now + self.policy.cold_wait(&line.terms);
                line.asked = Some(Asked { since: now, until });
            }
            let rejection = Rejection::QueueFull { model: model.clone(), limit };
            effects.push(Effect::Reject { ticket, rejection });
        }
    }

    /// The client of a waiting request has left.
    pub fn leave(&mut self, now: Moment, ticket: Ticket) -> Effects {
        let mut effects = Effects::new();
        for line in self.lines.values_mut() {
            line.waiting.leave(ticket);
        }
        self.settle(now, &mut effects);
        effects
    }

    /// A booked slot is given back: its request has ended, however it ended.
    pub fn finish(&mut self, now: Moment, booking: BookingId) -> Effects {
        let mut effects = Effects::new();
        let Some((model, instance)) = self.bookings.remove(&booking) else { return effects };
        let Some(line) = self.lines.get_mut(&model) else { return effects };
        line.last_active = Some(now);
        if let Engine::Serving(serving) = &mut line.engine
            && serving.instance == instance
        {
            serving.in_flight = serving.in_flight.saturating_sub(1);
            // An engine that answers has proven itself.
            line.failures = 0;
        }
        // A model with free slots and nobody waiting anywhere: only the clock can change anything.
        let leaving = line.outdated()
            || matches!(&line.engine, Engine::Serving(serving) if serving.draining.is_some());
        let quiet = line.in_flight() == 0;
        if leaving || self.lines.values().any(|line| line.activity().waiting > 0) {
            self.settle(now, &mut effects);
        } else if quiet && self.wake.is_none_or(|wake| wake <= now) {
            self.wake = self.next_wake(now);
        }
        effects
    }

    /// No later than the next moment at which something happens by itself, and so when to call
    /// [`Group::tick`]. Kept rather than found anew with every event: a model whose idle time is put
    /// off by each request is looked at when it would have been over first.
    pub fn wake_at(&self) -> Option<Moment> {
        self.wake
    }

    /// Nothing has happened, but the moment of [`Group::wake_at`] has come.
    pub fn tick(&mut self, now: Moment) -> Effects {
        let mut effects = Effects::new();
        self.settle(now, &mut effects);
        effects
    }

    /// Whether nothing is left: no member, no engine, no booking.
    pub fn spent(&self) -> bool {
        self.lines.is_empty() && self.bookings.is_empty()
    }

    /// What can be seen of the members.
    pub fn view(&self, now: Moment) -> Vec<MemberView> {
        self.lines.values().map(|line| line.view(now)).collect()
    }
}

/// Grants `ticket` a slot if the line's engine takes requests and has a free one.
fn grant_one(
    line: &mut Line,
    bookings: &mut Bookings,
    next_booking: &mut u64,
    ticket: Ticket,
    effects: &mut Effects,
) -> bool {
    let model = line.terms.id.clone();
    let slots = line.terms.slots;
    let Some(serving) = line.open() else { return false };
    if slots.is_some_and(|slots| serving.in_flight >= slots) {
        return false;
    }
    serving.in_flight += 1;
    let booking = BookingId(*next_booking);
    *next_booking += 1;
    bookings.insert(booking, (model.clone(), serving.instance));
    effects.push(Effect::Grant { ticket, booking, model, address: serving.address });
    true
}
