//! What those who wait ask of the choice of their endpoint, where they ask anything. Who insists on one endpoint is helped
//! by no other: it is no demand for more of them.

use std::collections::HashMap;

use super::{Pool, PoolEffect};
use crate::ids::{EndpointId, Ticket};
use crate::rejection::Rejection;
use crate::routing::Wish;

/// What is asked, by those who wait.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    asked: HashMap<Ticket, Wish<EndpointId>>,
    /// How many of them insist.
    insisting: usize,
}

impl Wishes {
    /// `ticket` waits and asks this.
    pub(super) fn ask(&mut self, ticket: Ticket, wish: Wish<EndpointId>) {
        if wish != Wish::default() {
            self.insisting += usize::from(insists(&wish).is_some());
            self.asked.insert(ticket, wish);
        }
    }

    /// What `ticket` asks.
    pub(super) fn of(&self, ticket: Ticket) -> Wish<EndpointId> {
        self.asked.get(&ticket).cloned().unwrap_or_default()
    }

    /// `ticket` waits no more.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        if let Some(wish) = self.asked.remove(&ticket) {
            self.insisting -= usize::from(insists(&wish).is_some());
        }
    }

    /// Nobody waits.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many of those who wait are helped by no other endpoint than the one that they insist on.
    pub(super) fn insisting(&self) -> usize {
        self.insisting
    }
}

/// The endpoint that the wish insists on, and what that alone has.
pub(super) fn insists(wish: &Wish<EndpointId>) -> Option<(&EndpointId, &str)> {
    wish.holder.as_ref().zip(wish.insists.as_deref())
}

impl Pool {
    /// What somebody who asks this is told at once, if it insists on an endpoint that is gone, or goes: nobody else has what
    /// it asks for.
    pub(super) fn forsakes(&self, wish: &Wish<EndpointId>) -> Option<Rejection> {
        let (holder, what) = insists(wish)?;
        let stays = self.endpoints.get(holder).is_some_and(|endpoint| !endpoint.goes());
        (!stays).then(|| Rejection::MakerGone { what: what.to_owned() })
    }

    /// Tells that to those who wait.
    pub(super) fn tell_the_forsaken(&mut self, effects: &mut Vec<PoolEffect>) {
        if self.wishes.insisting == 0 {
            return;
        }
        let asked = self.wishes.asked.iter();
        let mut told: Vec<_> =
            asked.filter_map(|(ticket, wish)| Some((*ticket, self.forsakes(wish)?))).collect();
        told.sort_unstable_by_key(|(ticket, _)| *ticket);
        for (ticket, rejection) in told {
            self.waiting.leave(ticket);
            self.wishes.forget(ticket);
            effects.push(PoolEffect::Reject { ticket, rejection });
        }
    }
}
