//! What a shell asks of the state machine in it, whichever of core's two it is.

use std::net::SocketAddr;

use flexinfer_core::ids::{BookingId, EndpointId, Ticket};
use flexinfer_core::moment::Moment;
use flexinfer_core::queueing::{Effect, Group};
use flexinfer_core::rejection::Rejection;

use super::platform::Order;

/// A machine of requests that wait and slots that are given back.
pub(crate) trait Machine: Send + 'static {
    /// What its events come to.
    type Effect;
    /// What is left of effects once requests are answered: for others to carry out.
    type Order: Send + 'static;

    fn leave(&mut self, now: Moment, ticket: Ticket) -> Vec<Self::Effect>;
    fn finish(&mut self, now: Moment, booking: BookingId) -> Vec<Self::Effect>;
    fn tick(&mut self, now: Moment) -> Vec<Self::Effect>;
    fn wake_at(&self, now: Moment) -> Option<Moment>;
    fn sort(effect: Self::Effect) -> Sorted<Self::Order>;
}

/// An effect by who has to do with it.
pub(crate) enum Sorted<O> {
    Grant { ticket: Ticket, booking: BookingId, address: SocketAddr, endpoint: Option<EndpointId> },
    Reject { ticket: Ticket, rejection: Rejection },
    Order(O),
}

impl Machine for Group {
    type Effect = Effect;
    type Order = Order;

    fn leave(&mut self, now: Moment, ticket: Ticket) -> Vec<Effect> {
        self.leave(now, ticket)
    }

    fn finish(&mut self, now: Moment, booking: BookingId) -> Vec<Effect> {
        self.finish(now, booking)
    }

    fn tick(&mut self, now: Moment) -> Vec<Effect> {
        self.tick(now)
    }

    fn wake_at(&self, _now: Moment) -> Option<Moment> {
        self.wake_at()
    }

    fn sort(effect: Effect) -> Sorted<Order> {
        match effect {
            Effect::Grant { ticket, booking, address, .. } => {
                Sorted::Grant { ticket, booking, address, endpoint: None }
            }
            Effect::Reject { ticket, rejection } => Sorted::Reject { ticket, rejection },
            Effect::Start { instance, model, .. } => {
                Sorted::Order(Order::Start { instance, model })
            }
            Effect::Stop { instance, model } => Sorted::Order(Order::Stop { instance, model }),
            Effect::Tell { model, notice } => Sorted::Order(Order::Tell { model, notice }),
        }
    }
}
