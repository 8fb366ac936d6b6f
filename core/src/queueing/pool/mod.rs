//! The queue of one model whose engines somebody else starts: on a cluster the controller does, for an
//! external engine its owner.
//!
//! [`Pool`] is a state machine like [`Group`](super::Group): events and the time in, [`PoolEffect`]s
//! out. It chooses an endpoint and books a slot on it in one step, asks for probes, and says when what
//! it has is to be reported, which is what wakes the model.
//!
//! Guardrails. An event changes the state first and then calls `settle`, which derives everything else.
//! A list of endpoints alone never makes one usable: it has to answer its own probe first. What is in
//! flight on an endpoint is counted until it ends, whatever the lists say meanwhile.

mod endpoint;
mod events;
mod traffic;
mod view;
mod waking;
mod wishes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use super::effects::Notice;
use super::terms::{Policy, Terms};
use super::waiting::{Asked, Waiting};
use crate::activation::{Stage, Standing};
use crate::ids::{BookingId, EndpointId, ModelId, Ticket};
use crate::moment::Moment;
use crate::rejection::Rejection;
use crate::routing::{Roster, Wish};

pub use endpoint::Listed;
pub use traffic::Traffic;
pub use view::{EndpointState, EndpointView, PoolView};

use endpoint::Endpoint;
use traffic::{Now, Schedule};
use waking::Waking;
use wishes::{Wishes, insists};

/// When a request that was told of a failure may ask again: the cluster tries on by itself.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum PoolEffect {
    /// The request of `ticket` has a slot on `endpoint` at `address`, until `booking` is finished.
    Grant { ticket: Ticket, booking: BookingId, endpoint: EndpointId, address: SocketAddr },
    /// The request of `ticket` is answered with `rejection`.
    Reject { ticket: Ticket, rejection: Rejection },
    /// The engine shall be asked whether it serves, until it does or is in question no more.
    Probe { model: ModelId, endpoint: EndpointId, address: SocketAddr },
    /// The controller shall read this; how it went is reported by [`Pool::reported`].
    Report { model: ModelId, traffic: Traffic },
    /// Something that an operator wants to read.
    Tell { model: ModelId, notice: Notice },
}

/// One model's queue and its endpoints.
#[derive(Debug)]
pub struct Pool {
    policy: Policy,
    terms: Terms,
    /// Its Model is gone: nobody is let in.
    removed: bool,
    standing: Standing,
    /// Another model of its group waits for the GPU that this one holds.
    contended: bool,
    endpoints: BTreeMap<EndpointId, Endpoint>,
    /// Who of them is open, how busy each is, whose turn it is.
    roster: Roster<EndpointId>,
    waiting: Waiting,
    wishes: Wishes,
    /// A request that may not wait has asked for it.
    asked: Option<Asked>,
    bookings: HashMap<BookingId, EndpointId>,
    next_booking: u64,
    last_active: Option<Moment>,
    /// Something was in flight or waited after the last event.
    busy: bool,
    /// Requests wait for its first endpoint.
    waking: Option<Waking>,
    /// How long it took the last time.
    last_load: Option<Duration>,
    /// What that time was spent on.
    last_wait: Vec<(Stage, Duration)>,
    schedule: Schedule,
}

impl Pool {
    /// The pool of one model, without endpoints. `first_booking` starts the range of this pool's booking
    /// numbers.
    pub fn new(policy: Policy, terms: Terms, first_booking: u64) -> Self {
        Self {
            roster: Roster::new(policy.routing.strategy_for(terms.routing), terms.slots),
            policy,
            terms,
            removed: false,
            standing: Standing::default(),
            contended: false,
            endpoints: BTreeMap::new(),
            waiting: Waiting::default(),
            wishes: Wishes::default(),
            asked: None,
            bookings: HashMap::new(),
            next_booking: first_booking,
            last_active: None,
            busy: false,
            waking: None,
            last_load: None,
            last_wait: Vec::new(),
            schedule: Schedule::new(),
        }
    }

    fn wanted(&self) -> u32 {
        let asked = usize::from(self.asked.is_some());
        u32::try_from(self.calling() + asked).unwrap_or(u32::MAX)
    }

    /// How many wait that any endpoint would help.
    fn calling(&self) -> usize {
        self.waiting.len().saturating_sub(self.wishes.insisting())
    }

    /// Whether some endpoint takes requests, leaving aside whether it has room.
    fn open(&self) -> bool {
        !self.standing.draining && self.roster.any_open()
    }

    /// Brings the pool to where its state wants it: requests past their deadline are answered; free
    /// slots are granted; who waits for nothing is told; what there is to report is reported.
    fn settle(&mut self, now: Moment, effects: &mut Vec<PoolEffect>) {
        self.expire(now, effects);
        self.tell_the_forsaken(effects);
        self.notice_waking(now, effects);
        self.grant(effects);
        self.tell_the_hopeless(effects);
        self.report(now, effects);
    }

    fn expire(&mut self, now: Moment, effects: &mut Vec<PoolEffect>) {
        let open = self.open();
        let protected = self.standing.not_before.filter(|moment| *moment > now);
        let retry_in = protected.map(|moment| now.until(moment));
        self.asked = self.asked.filter(|asked| now < asked.until && !open);
        for waiter in self.waiting.take_due(now) {
            let (model, waited) = (self.terms.id.clone(), now.since(waiter.since));
            let insists = insists(&self.wishes.of(waiter.ticket)).is_some();
            let rejection = if open || insists {
                Rejection::QueueTimeout { model, waited }
            } else {
                Rejection::ActivationTimeout { model, waited, retry_in }
            };
            self.wishes.forget(waiter.ticket);
            effects.push(PoolEffect::Reject { ticket: waiter.ticket, rejection });
        }
    }

    fn notice_waking(&mut self, now: Moment, effects: &mut Vec<PoolEffect>) {
        let (waiting, calling) = (self.waiting.len(), self.calling());
        let model = self.terms.id.clone();
        match (self.open(), self.waking.take()) {
            (true, Some(waking)) => {
                let (took, stages) = waking.end(now);
                (self.last_load, self.last_wait) = (Some(took), stages.clone());
                let notice = Notice::Ready { took, waiting, stages };
                effects.push(PoolEffect::Tell { model, notice });
            }
            (false, Some(mut waking)) if self.wanted() > 0 => {
                waking.enter(now, self.standing.stage);
                self.waking = Some(waking);
            }
            (false, None) if calling > 0 => {
                self.waking = Some(Waking::begin(now, self.standing.stage));
                let notice = Notice::Waking { waiting: calling, swap: None };
                effects.push(PoolEffect::Tell { model, notice });
            }
            _ => {}
        }
    }

    /// Grants free slots to those who wait, in their order. One whose wish cannot be met yet lets others
    /// go first.
    fn grant(&mut self, effects: &mut Vec<PoolEffect>) {
        let mut passed = 0;
        while let Some(ticket) = self.waiting.at(passed).filter(|_| self.roster.any_free()) {
            if self.grant_one(ticket, &self.wishes.of(ticket), effects) {
                self.waiting.remove(passed);
                self.wishes.forget(ticket);
            } else if self.standing.draining {
                break;
            } else {
                passed += 1;
            }
        }
    }

    /// Grants `ticket` a slot if some endpoint takes requests and has a free one.
    fn grant_one(
        &mut self,
        ticket: Ticket,
        wish: &Wish<EndpointId>,
        effects: &mut Vec<PoolEffect>,
    ) -> bool {
        if self.standing.draining {
            return false;
        }
        let Some(id) = self.roster.book(wish) else { return false };
        let Some(endpoint) = self.endpoints.get(&id) else {
            // Excluded: the roster's open members are endpoints. The slot must not be lost for that.
            self.roster.finish(&id);
            return false;
        };
        let booking = BookingId(self.next_booking);
        self.next_booking += 1;
        let address = endpoint.listed.address;
        self.bookings.insert(booking, id.clone());
        effects.push(PoolEffect::Grant { ticket, booking, endpoint: id, address });
        true
    }

    fn tell_the_hopeless(&mut self, effects: &mut Vec<PoolEffect>) {
        if self.waiting.is_empty() || self.open() {
            return;
        }
        let model = self.terms.id.clone();
        if let Some(failure) = self.standing.failure.clone() {
            let retry_in = Some(AFTER_FAILURE);
            let rejection = Rejection::ActivationFailed { model, failure, retry_in };
            self.dissolve(&rejection, effects);
        } else if let Some(holder) = self.standing.held_by.clone() {
            self.dissolve(&Rejection::HeldByHigherPriority { model, holder }, effects);
        }
    }

    /// Tells everybody who waits.
    fn dissolve(&mut self, rejection: &Rejection, effects: &mut Vec<PoolEffect>) {
        self.wishes.clear();
        let told = self.waiting.dissolve();
        let told = told.map(|ticket| PoolEffect::Reject { ticket, rejection: rejection.clone() });
        effects.extend(told);
    }

    fn report(&mut self, now: Moment, effects: &mut Vec<PoolEffect>) {
        if self.removed {
            return;
        }
        let busy = !self.bookings.is_empty() || self.wanted() > 0;
        if std::mem::replace(&mut self.busy, busy) || busy {
            self.last_active = Some(now);
        }
        let state = self.now();
        self.schedule.observe(now, &state);
        if let Some(traffic) = self.schedule.begin(now, &state, self.terms.idle_timeout) {
            effects.push(PoolEffect::Report { model: self.terms.id.clone(), traffic });
        }
    }

    fn now(&self) -> Now {
        Now {
            in_flight: u32::try_from(self.bookings.len()).unwrap_or(u32::MAX),
            waiting: self.wanted(),
            last_active: self.last_active,
            draining: self.standing.draining,
            pressing: self.contended || !self.standing.settled() || !self.open(),
        }
    }

    /// The next moment at which something happens by itself.
    pub fn wake_at(&self, now: Moment) -> Option<Moment> {
        let report = self.schedule.due(&self.now(), self.terms.idle_timeout);
        let report = report.filter(|_| !self.removed).filter(|due| *due > now);
        let asked = self.asked.map(|asked| asked.until).filter(|until| *until > now);
        [self.waiting.next_deadline(), asked, report].into_iter().flatten().min()
    }
}
