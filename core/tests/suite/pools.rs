//! Random events against a pool, with its promises checked after each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use flexinfer_core::activation::{Failure, Reason, Standing};
use flexinfer_core::ids::{BookingId, EndpointId, Ticket};
use flexinfer_core::moment::Moment;
use flexinfer_core::queueing::{Listed, Policy, Pool, PoolEffect, Terms};
use flexinfer_core::routing::Wish;
use flexinfer_crds::model::Phase;
use proptest::prelude::*;

const SLOTS: u32 = 2;

#[derive(Clone, Debug)]
enum Event {
    Ask,
    Leave(usize),
    Finish(usize),
    Unreachable(usize),
    /// The pods that are listed, each with whether it is ready and whether it leaves.
    List(Vec<(u8, bool, bool)>),
    Answer(u8),
    Stand(Option<Phase>, bool, bool),
    Contend(bool),
    Written(bool),
    Pass(u64),
    Bound(u32),
}

fn event() -> impl Strategy<Value = Event> {
    let phase = prop_oneof![
        Just(None),
        Just(Some(Phase::Idle)),
        Just(Some(Phase::Loading)),
        Just(Some(Phase::Ready)),
    ];
    prop_oneof![
        12 => Just(Event::Ask),
        2 => any::<usize>().prop_map(Event::Leave),
        8 => any::<usize>().prop_map(Event::Finish),
        2 => any::<usize>().prop_map(Event::Unreachable),
        4 => prop::collection::vec((0_u8..4, any::<bool>(), prop::bool::weighted(0.2)), 0..4)
            .prop_map(Event::List),
        8 => (0_u8..4).prop_map(Event::Answer),
        2 => (phase, prop::bool::weighted(0.2), prop::bool::weighted(0.1))
            .prop_map(|(phase, draining, failed)| Event::Stand(phase, draining, failed)),
        1 => any::<bool>().prop_map(Event::Contend),
        6 => prop::bool::weighted(0.8).prop_map(Event::Written),
        6 => prop_oneof![0_u64..2_000, 0_u64..90_000].prop_map(Event::Pass),
        1 => (0_u32..8).prop_map(Event::Bound),
    ]
}

fn terms(max_queue: u32) -> Terms {
    Terms {
        swap_cooldown: Duration::ZERO,
        slots: Some(SLOTS),
        max_queue: Some(max_queue),
        ..crate::terms::terms("a")
    }
}

fn listed(pod: u8, ready: bool, leaving: bool) -> Listed {
    let address = SocketAddr::from(([10, 0, 0, pod], 8000));
    Listed { id: EndpointId(format!("pod-{pod}").into()), address, ready, leaving }
}

#[derive(Default)]
struct Engine {
    listed: bool,
    leaving: bool,
    proven: bool,
    in_flight: u32,
}

/// The world around the pool, kept by effects alone.
struct World {
    pool: Pool,
    now: Moment,
    next_ticket: u64,
    waiting: Vec<Ticket>,
    answered: BTreeSet<Ticket>,
    left: BTreeSet<Ticket>,
    bookings: Vec<(BookingId, SocketAddr)>,
    engines: BTreeMap<SocketAddr, Engine>,
    standing: Standing,
    writing: bool,
    writes: Vec<Moment>,
    told: [u32; 2],
}

impl World {
    fn new() -> Self {
        Self {
            pool: Pool::new(Policy::default(), terms(5), 0),
            now: Moment::ORIGIN,
            next_ticket: 0,
            waiting: Vec::new(),
            answered: BTreeSet::new(),
            left: BTreeSet::new(),
            bookings: Vec::new(),
            engines: BTreeMap::new(),
            standing: Standing::default(),
            writing: false,
            writes: Vec::new(),
            told: [0, 0],
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Ask => {
                let ticket = Ticket(self.next_ticket);
                self.next_ticket += 1;
                self.waiting.push(ticket);
                let effects = self.pool.arrive(self.now, ticket, Wish::default());
                self.carry_out(effects);
            }
            Event::Leave(n) if !self.waiting.is_empty() => {
                let ticket = self.waiting.remove(n % self.waiting.len());
                self.left.insert(ticket);
                let effects = self.pool.leave(self.now, ticket);
                self.carry_out(effects);
            }
            Event::Finish(n) if !self.bookings.is_empty() => self.finish(n % self.bookings.len()),
            Event::Unreachable(n) if !self.bookings.is_empty() => {
                let index = n % self.bookings.len();
                let (booking, address) = self.bookings[index];
                self.engines.entry(address).or_default().proven = false;
                let effects = self.pool.unreachable(self.now, booking);
                self.carry_out(effects);
                self.finish(index);
            }
            Event::Leave(_) | Event::Finish(_) | Event::Unreachable(_) => {}
            Event::List(pods) => self.list(&pods),
            Event::Answer(pod) => self.answer(pod),
            Event::Stand(phase, draining, failed) => {
                let failure = failed.then(|| Failure::new(Reason::CrashLoop, "it dies"));
                let away = phase == Some(Phase::Idle) && !draining;
                let standing = Standing { phase, draining, away, failure, ..Standing::default() };
                if standing.stops_those_of(&self.standing) {
                    self.engines.values_mut().for_each(|engine| engine.proven = false);
                }
                self.standing = standing.clone();
                let effects = self.pool.stand(self.now, standing);
                self.carry_out(effects);
            }
            Event::Contend(contended) => {
                let effects = self.pool.contend(self.now, contended);
                self.carry_out(effects);
            }
            Event::Written(arrived) => self.written(arrived),
            Event::Pass(millis) => self.pass(Duration::from_millis(millis)),
            Event::Bound(bound) => {
                let effects = self.pool.configure(self.now, terms(bound));
                self.carry_out(effects);
            }
        }
    }

    fn list(&mut self, pods: &[(u8, bool, bool)]) {
        let pods: BTreeMap<u8, (bool, bool)> =
            pods.iter().map(|(pod, ready, leaving)| (*pod, (*ready, *leaving))).collect();
        for engine in self.engines.values_mut() {
            engine.listed = false;
        }
        let mut all = Vec::new();
        for (pod, (ready, leaving)) in pods {
            let listed = listed(pod, ready, leaving);
            let engine = self.engines.entry(listed.address).or_default();
            (engine.listed, engine.leaving) = (true, leaving);
            all.push(listed);
        }
        let effects = self.pool.list(self.now, all);
        self.carry_out(effects);
    }

    fn answer(&mut self, pod: u8) {
        let Listed { id, address, .. } = listed(pod, true, false);
        if self.pool.in_question(&id, address) {
            self.engines.entry(address).or_default().proven = true;
            let effects = self.pool.answered(self.now, &id, address);
            self.carry_out(effects);
        }
    }

    fn finish(&mut self, index: usize) {
        let (booking, address) = self.bookings.swap_remove(index);
        self.engines.entry(address).or_default().in_flight -= 1;
        let effects = self.pool.finish(self.now, booking);
        self.carry_out(effects);
    }

    fn written(&mut self, arrived: bool) {
        if std::mem::take(&mut self.writing) {
            let effects = self.pool.reported(self.now, arrived, 0.5);
            self.carry_out(effects);
        }
    }

    /// Time passes as in the real shell: the pool is woken at every moment it asked for.
    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(wake) = self.pool.wake_at(self.now).filter(|wake| *wake <= end) {
            assert!(wake > self.now, "it asks to be woken at {wake:?}, now {:?}", self.now);
            self.now = wake;
            let effects = self.pool.tick(wake);
            self.carry_out(effects);
            self.check();
        }
        self.now = end;
        let effects = self.pool.tick(end);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<PoolEffect>) {
        for effect in effects {
            match effect {
                PoolEffect::Grant { ticket, booking, address, .. } => {
                    self.settle(ticket, true);
                    let engine = self.engines.get_mut(&address).expect("it was listed");
                    assert!(engine.listed && !engine.leaving, "it takes requests");
                    assert!(engine.proven, "it has answered");
                    assert!(!self.standing.draining, "a draining model takes nothing");
                    engine.in_flight += 1;
                    assert!(engine.in_flight <= SLOTS);
                    self.bookings.push((booking, address));
                }
                PoolEffect::Reject { ticket, .. } => self.settle(ticket, false),
                PoolEffect::Report { traffic, .. } => {
                    assert!(!self.writing, "one write at a time");
                    self.writing = true;
                    self.writes.push(self.now);
                    self.told = [traffic.in_flight, traffic.waiting];
                    assert!(traffic.peak >= traffic.in_flight + traffic.waiting);
                }
                PoolEffect::Probe { address, .. } => {
                    self.engines.entry(address).or_default().proven = false;
                }
                PoolEffect::Tell { .. } => {}
            }
        }
    }

    fn settle(&mut self, ticket: Ticket, in_order: bool) {
        assert!(!self.left.contains(&ticket), "who left is not answered");
        assert!(self.answered.insert(ticket), "every request is answered once");
        let place = self.waiting.iter().position(|waiting| *waiting == ticket);
        let place = place.expect("it waits");
        assert!(!in_order || place == 0, "slots are granted in order of arrival");
        self.waiting.remove(place);
    }

    fn check(&self) {
        let view = self.pool.view();
        assert_eq!(view.waiting, self.waiting.len());
        assert_eq!(view.in_flight, self.bookings.len());
        let listed = view.endpoints.iter().map(|endpoint| endpoint.in_flight).sum::<u32>();
        assert!(listed as usize <= self.bookings.len());
        let free = self.engines.values().any(|engine| {
            engine.listed && !engine.leaving && engine.proven && engine.in_flight < SLOTS
        });
        let idle = free && !self.standing.draining && !self.waiting.is_empty();
        assert!(!idle, "somebody waits while a slot is free");
        assert!(self.pool.wake_at(self.now).is_none_or(|wake| wake > self.now));
    }

    /// Everybody behaves from now on: all are answered, the truth arrives, and silence falls.
    fn come_to_rest(&mut self) {
        for _ in 0..40 {
            while !self.bookings.is_empty() {
                self.finish(0);
            }
            self.written(true);
            self.pass(Duration::from_secs(10));
            self.check();
        }
        assert!(self.waiting.is_empty(), "somebody waits for ever");
        if !self.writes.is_empty() {
            assert_eq!(self.told, [0, 0], "the last word is the truth");
        }
        let silent = self.writes.len();
        self.written(true);
        self.pass(Duration::from_secs(3600));
        assert_eq!(self.writes.len(), silent, "nothing happens and something is written");
    }
}

proptest! {
    #[test]
    fn a_pool_keeps_its_promises(events in prop::collection::vec(event(), 1..150)) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
            world.check();
        }
        world.come_to_rest();
    }
}
