//! What happens to a pool.

use super::endpoint::{Endpoint, Listed};
use super::{Asked, Pool, PoolEffect, insists};
use crate::activation::Standing;
use crate::ids::{BookingId, EndpointId, Ticket};
use crate::moment::Moment;
use crate::queueing::effects::Notice;
use crate::queueing::terms::Terms;
use crate::rejection::Rejection;
use crate::routing::Wish;

impl Pool {
    /// The Model says this now.
    pub fn configure(&mut self, now: Moment, terms: Terms) -> Vec<PoolEffect> {
        let strategy = self.policy.routing.strategy_for(terms.routing);
        self.roster.configure(strategy, terms.slots);
        self.terms = terms;
        self.settled(now)
    }

    /// The Model is gone: who waits is told. What is in flight may finish.
    pub fn remove(&mut self, now: Moment) -> Vec<PoolEffect> {
        self.removed = true;
        let rejection = Rejection::ModelRemoved { model: self.terms.id.clone() };
        let mut effects = Vec::new();
        self.dissolve(&rejection, &mut effects);
        self.settle(now, &mut effects);
        effects
    }

    /// A request has arrived. Exactly one of `Grant` and `Reject` follows for its ticket, now or later,
    /// unless it leaves.
    pub fn arrive(
        &mut self,
        now: Moment,
        ticket: Ticket,
        wish: Wish<EndpointId>,
    ) -> Vec<PoolEffect> {
        let mut effects = Vec::new();
        let model = self.terms.id.clone();
        if self.removed {
            let rejection = Rejection::ModelRemoved { model };
            effects.push(PoolEffect::Reject { ticket, rejection });
            return effects;
        }
        // 1. What it asks for is gone with who had it: that is known at once.
        if let Some(rejection) = self.forsakes(&wish) {
            effects.push(PoolEffect::Reject { ticket, rejection });
            return effects;
        }
        // 2. A free slot, and nobody who came before: only the report can change.
        if self.waiting.is_empty() && self.grant_one(ticket, &wish, &mut effects) {
            self.report(now, &mut effects);
            return effects;
        }
        // 3. It waits; whoever can help learns of it, also where a failure is known already. Nobody who is woken could give
        // it what one endpoint alone has.
        let calls = !self.open() && insists(&wish).is_none();
        let patience =
            if calls { self.policy.cold_wait(&self.terms) } else { self.policy.queue_timeout };
        self.waiting.join(now, ticket, patience);
        self.wishes.ask(ticket, wish);
        if calls && self.standing.failure.is_some() {
            self.ask(now);
        }
        self.settle(now, &mut effects);
        // 4. Only then is the bound applied: with a bound of zero a cold model is still woken.
        let limit = self.terms.max_queue.unwrap_or(self.policy.max_queue);
        if self.waiting.turn_away(ticket, limit) {
            self.wishes.forget(ticket);
            if calls && self.calling() == 0 {
                self.ask(now);
            }
            let rejection = Rejection::QueueFull { model, limit };
            effects.push(PoolEffect::Reject { ticket, rejection });
            self.report(now, &mut effects);
        }
        effects
    }

    /// Demand that outlives its request.
    fn ask(&mut self, now: Moment) {
        let until = now + self.policy.cold_wait(&self.terms);
        self.asked = Some(Asked { since: now, until });
    }

    /// The client of a waiting request has left.
    pub fn leave(&mut self, now: Moment, ticket: Ticket) -> Vec<PoolEffect> {
        self.waiting.leave(ticket);
        self.wishes.forget(ticket);
        self.settled(now)
    }

    /// A booked slot is given back: its request has ended, however it ended.
    pub fn finish(&mut self, now: Moment, booking: BookingId) -> Vec<PoolEffect> {
        let Some(id) = self.bookings.remove(&booking) else { return Vec::new() };
        self.roster.finish(&id);
        self.settled(now)
    }

    /// No connection to the booked endpoint could be made: it is asked before it gets anything new. The
    /// booking itself is given back by [`Pool::finish`].
    pub fn unreachable(&mut self, now: Moment, booking: BookingId) -> Vec<PoolEffect> {
        let mut effects = Vec::new();
        let Some(id) = self.bookings.get(&booking).cloned() else { return effects };
        let model = self.terms.id.clone();
        if let Some(endpoint) = self.endpoints.get_mut(&id).filter(|endpoint| endpoint.proven) {
            // One that leaves may stay after all (a notice withdrawn), and is asked then.
            endpoint.proven = false;
            let address = endpoint.listed.address;
            self.roster.set_open(&id, false);
            if endpoint.in_question() {
                effects.push(PoolEffect::Probe { model, endpoint: id, address });
            }
        }
        self.settle(now, &mut effects);
        effects
    }

    /// The endpoints are now these. One that is new, or was ready and is so no more, is asked.
    pub fn list(&mut self, now: Moment, listed: Vec<Listed>) -> Vec<PoolEffect> {
        let mut effects = Vec::new();
        self.endpoints.retain(|id, _| listed.iter().any(|other| other.id == *id));
        self.roster.set_members(listed.iter().map(|listed| listed.id.clone()));
        for listed in listed {
            let (id, address) = (listed.id.clone(), listed.address);
            let (asked, endpoint) = match self.endpoints.get_mut(&id) {
                Some(known) => {
                    let before = known.in_question();
                    let moved = known.listed.address != address;
                    let fell = known.listed.ready && !listed.ready;
                    known.proven &= !moved && !fell;
                    known.listed = listed;
                    (before && !moved, known)
                }
                None => (false, self.endpoints.entry(id.clone()).or_insert(Endpoint::new(listed))),
            };
            self.roster.set_open(&id, endpoint.open());
            if endpoint.in_question() && !asked {
                let model = self.terms.id.clone();
                effects.push(PoolEffect::Probe { model, endpoint: id, address });
            }
        }
        self.settle(now, &mut effects);
        effects
    }

    /// The endpoint says that it serves, at this address.
    pub fn answered(
        &mut self,
        now: Moment,
        id: &EndpointId,
        address: std::net::SocketAddr,
    ) -> Vec<PoolEffect> {
        let known = self.endpoints.get_mut(id);
        let asked =
            |endpoint: &&mut Endpoint| endpoint.listed.address == address && !endpoint.stopped;
        if let Some(endpoint) = known.filter(asked) {
            endpoint.proven = true;
            self.roster.set_open(id, endpoint.open());
        }
        self.settled(now)
    }

    /// Whether the endpoint still has to be asked.
    pub fn in_question(&self, id: &EndpointId, address: std::net::SocketAddr) -> bool {
        let known = self.endpoints.get(id);
        known.is_some_and(|known| known.listed.address == address && known.in_question())
    }

    /// The controller says this of the model now.
    pub fn stand(&mut self, now: Moment, standing: Standing) -> Vec<PoolEffect> {
        let mut effects = Vec::new();
        let news = standing.failure.clone().filter(|_| self.standing.failure != standing.failure);
        let before = std::mem::replace(&mut self.standing, standing);
        if self.standing.stops_those_of(&before) {
            self.stop_endpoints();
        } else if self.standing.has_engines() {
            self.ask_the_stopped(&mut effects);
        }
        if let Some(failure) = news.filter(|_| !self.open()) {
            let model = self.terms.id.clone();
            let notice =
                Notice::Failed { failure, retry_in: super::AFTER_FAILURE, retrying: false };
            effects.push(PoolEffect::Tell { model, notice });
        }
        self.settle(now, &mut effects);
        effects
    }

    /// Those that are listed end, and the list may say so late.
    fn stop_endpoints(&mut self) {
        for (id, endpoint) in &mut self.endpoints {
            (endpoint.proven, endpoint.stopped) = (false, true);
            self.roster.set_open(id, false);
        }
    }

    /// There are engines again. What was taken for stopped is none of them, unless the controller was heard late.
    fn ask_the_stopped(&mut self, effects: &mut Vec<PoolEffect>) {
        for (id, endpoint) in self.endpoints.iter_mut().filter(|(_, endpoint)| endpoint.stopped) {
            endpoint.stopped = false;
            if endpoint.in_question() {
                let (model, address) = (self.terms.id.clone(), endpoint.listed.address);
                effects.push(PoolEffect::Probe { model, endpoint: id.clone(), address });
            }
        }
    }

    /// Whether another model of the same group waits for this one's GPU.
    pub fn contend(&mut self, now: Moment, contended: bool) -> Vec<PoolEffect> {
        if self.contended == contended {
            return Vec::new();
        }
        self.contended = contended;
        self.settled(now)
    }

    /// The report under way has arrived, or may not have. `jitter` in 0.0..1.0 spreads retries.
    pub fn reported(&mut self, now: Moment, arrived: bool, jitter: f64) -> Vec<PoolEffect> {
        self.schedule.ended(now, arrived, jitter);
        self.settled(now)
    }

    /// Nothing has happened, but the moment of [`Pool::wake_at`] has come.
    pub fn tick(&mut self, now: Moment) -> Vec<PoolEffect> {
        self.settled(now)
    }

    fn settled(&mut self, now: Moment) -> Vec<PoolEffect> {
        let mut effects = Vec::new();
        self.settle(now, &mut effects);
        effects
    }
}
