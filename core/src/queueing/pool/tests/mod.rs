//! Pools in tables: a world that plays the cluster around one pool.

mod endpoints;
mod insisting;
mod leaving;
mod reporting;
mod waiting;

use std::net::SocketAddr;

use flexinfer_crds::model::Phase;

use super::*;
use crate::activation::{Failure, Reason};
use crate::queueing::terms::tests::terms as terms_of;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn terms() -> Terms {
    terms_of("a")
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

    /// A request for what `holder` alone has.
    fn insist(&mut self, holder: &str) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let (holder, insists) = (Some(listed(holder).id), Some("a.png".to_owned()));
        let wish = Wish { holder, insists, ..Wish::default() };
        self.act(|pool, now| pool.arrive(now, ticket, wish));
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

    /// A request that was granted a slot, and its booking.
    fn served(&mut self) -> BookingId {
        let ticket = self.ask();
        self.granted(ticket).expect("a free slot").0
    }

    /// Serving at `a`, of which a request that it was granted could not be connected to: it takes nothing more.
    fn unreachable(listed: Listed) -> Self {
        let mut world = Self::serving(terms(), &["a"]);
        let booking = world.served();
        world.act(|pool, now| pool.list(now, vec![listed]));
        world.act(|pool, now| pool.unreachable(now, booking));
        world.act(|pool, now| pool.unreachable(now, booking));
        world.finish(booking);
        world
    }

    /// The next request is granted a slot at `a` once that has answered.
    fn serves_once_it_answers(&mut self) {
        let waiting = self.ask();
        assert!(self.granted(waiting).is_none());
        self.answer("a");
        assert!(self.granted(waiting).is_some());
    }

    fn arrived(&mut self) {
        self.act(|pool, now| pool.reported(now, true, 0.5));
    }
}
