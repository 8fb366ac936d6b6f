//! The world around a group, kept by its effects alone and compared with what the group says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use flexinfer_core::activation::{Failure, Reason, Report};
use flexinfer_core::ids::{BookingId, InstanceId, ModelId, Ticket};
use flexinfer_core::moment::Moment;
use flexinfer_core::queueing::{Backoff, Effect, Effects, Group, Notice, Policy, Terms};
use flexinfer_core::scaling::Warmth;
use flexinfer_core::sharing::Capacity;

use super::events::{Edit, Event};

const NAMES: [&str; 3] = ["a", "b", "c"];

pub(super) const MODELS: usize = NAMES.len();

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Life {
    Loading,
    Serving,
    Stopping,
}

#[derive(Clone, Debug)]
pub(super) struct Engine {
    pub(super) model: ModelId,
    pub(super) generation: u64,
    pub(super) life: Life,
    pub(super) in_flight: u32,
    pub(super) vram: Option<u64>,
}

/// The world around the group, kept by effects alone and compared with what the group says.
pub(super) struct World {
    pub(super) group: Group,
    pub(super) capacity: Capacity,
    pub(super) now: Moment,
    pub(super) terms: BTreeMap<ModelId, Terms>,
    /// The last generation of each Model, also of those that were removed.
    pub(super) generations: BTreeMap<ModelId, u64>,
    pub(super) next_ticket: u64,
    pub(super) waiting: BTreeMap<ModelId, Vec<Ticket>>,
    pub(super) answered: BTreeSet<Ticket>,
    pub(super) left: BTreeSet<Ticket>,
    pub(super) bookings: Vec<(BookingId, InstanceId)>,
    pub(super) engines: BTreeMap<InstanceId, Engine>,
}

fn id(model: usize) -> ModelId {
    ModelId::new("default", NAMES[model])
}

fn address(instance: InstanceId) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], u16::try_from(instance.0 % 60_000).unwrap() + 1))
}

fn terms(model: usize, vram: Option<u64>) -> Terms {
    Terms {
        idle_timeout: Duration::from_secs(100),
        swap_cooldown: Duration::from_secs(30),
        vram_mib: vram,
        drain_limit: Duration::from_secs(20),
        slots: Some(2),
        max_queue: Some(5),
        ..crate::terms::terms(NAMES[model])
    }
}

impl World {
    pub(super) fn new(capacity: Capacity, backoff: Option<Backoff>) -> Self {
        let policy = Policy { backoff, ..Policy::default() };
        let sizes: [Option<u64>; MODELS] =
            if capacity == Capacity::One { [None; MODELS] } else { [Some(10), Some(8), None] };
        let mut world = Self {
            group: Group::new(policy, capacity, 0),
            capacity,
            now: Moment::ORIGIN,
            terms: (0..MODELS).map(|model| (id(model), terms(model, sizes[model]))).collect(),
            generations: BTreeMap::new(),
            next_ticket: 0,
            waiting: BTreeMap::new(),
            answered: BTreeSet::new(),
            left: BTreeSet::new(),
            bookings: Vec::new(),
            engines: BTreeMap::new(),
        };
        world.configure();
        world
    }

    fn configure(&mut self) {
        let effects = self.group.configure(self.now, self.terms.values().cloned().collect());
        self.carry_out(effects);
    }

    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Ask(model) => self.ask(&id(model)),
            Event::Leave(n) => {
                let tickets: Vec<_> = self.waiting.values().flatten().copied().collect();
                if let Some(ticket) = pick(&tickets, n) {
                    self.left.insert(ticket);
                    self.waiting.values_mut().for_each(|line| line.retain(|t| *t != ticket));
                    let effects = self.group.leave(self.now, ticket);
                    self.carry_out(effects);
                }
            }
            Event::Finish(n) => {
                if !self.bookings.is_empty() {
                    let index = n % self.bookings.len();
                    self.finish(index);
                }
            }
            Event::Ready(n) => self.report(n, &[Life::Loading], |instance| Report::Ready {
                instance,
                address: address(instance),
            }),
            Event::Fail(n) => {
                self.report(n, &[Life::Loading, Life::Serving, Life::Stopping], |instance| {
                    let failure = Failure::new(Reason::DiedWhileLoading, "it died");
                    Report::Failed { instance, failure }
                });
            }
            Event::Gone(n) => {
                self.report(n, &[Life::Stopping], |instance| Report::Gone { instance });
            }
            Event::Pass(millis) => self.pass(Duration::from_millis(millis)),
            Event::Edit(model, edit) => self.edit(model, &edit),
            Event::Remove(model) => {
                self.terms.remove(&id(model));
                self.configure();
            }
        }
    }

    fn ask(&mut self, model: &ModelId) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting.entry(model.clone()).or_default().push(ticket);
        let effects = self.group.arrive(self.now, ticket, model);
        self.carry_out(effects);
    }

    fn finish(&mut self, index: usize) {
        let (booking, instance) = self.bookings.swap_remove(index);
        if let Some(engine) = self.engines.get_mut(&instance) {
            engine.in_flight -= 1;
        }
        let effects = self.group.finish(self.now, booking);
        self.carry_out(effects);
    }

    fn report(&mut self, n: usize, lives: &[Life], report: impl Fn(InstanceId) -> Report) {
        let instances: Vec<_> = self
            .engines
            .iter()
            .filter(|(_, engine)| lives.contains(&engine.life))
            .map(|(instance, _)| *instance)
            .collect();
        let Some(instance) = pick(&instances, n) else { return };
        let report = report(instance);
        if let Report::Ready { .. } = report {
            self.engines.get_mut(&instance).unwrap().life = Life::Serving;
        } else {
            self.engines.remove(&instance);
        }
        let effects = self.group.report(self.now, report, 0.5);
        self.carry_out(effects);
    }

    /// Time passes as in the real shell: the group is woken at every moment it asked for.
    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(wake) = self.group.wake_at().filter(|wake| *wake <= end) {
            assert!(wake > self.now, "the group asks to be woken at {wake:?}, now {:?}", self.now);
            self.now = wake;
            let effects = self.group.tick(wake);
            self.carry_out(effects);
            self.check();
        }
        self.now = end;
        let effects = self.group.tick(end);
        self.carry_out(effects);
    }

    fn edit(&mut self, model: usize, edit: &Edit) {
        let vram =
            if self.capacity == Capacity::One { None } else { [Some(10), Some(8), None][model] };
        let came_back = !self.terms.contains_key(&id(model));
        let known = self.terms.entry(id(model)).or_insert_with(|| terms(model, vram));
        known.priority = edit.priority;
        known.slots = edit.slots;
        known.warmth = edit.warmth;
        known.force_promotion = edit.forced;
        known.max_queue = Some(edit.max_queue);
        // One that comes back is never taken for the one that went.
        let last = self.generations.entry(id(model)).or_insert(1);
        *last += u64::from(edit.new_generation || came_back);
        known.generation = *last;
        if self.capacity != Capacity::One && edit.new_generation {
            known.vram_mib = [Some(4), Some(8), Some(12), None][edit.max_queue as usize % 4];
        }
        self.configure();
    }

    fn carry_out(&mut self, effects: Effects) {
        let mut cut_off = BTreeSet::new();
        for effect in effects {
            match effect {
                Effect::Grant { ticket, booking, model, address: granted } => {
                    self.answer(&model, ticket, true);
                    let (instance, engine) = self
                        .engines
                        .iter_mut()
                        .find(|(_, engine)| engine.model == model && engine.life == Life::Serving)
                        .expect("a grant names an engine that serves");
                    assert_eq!(granted, address(*instance));
                    engine.in_flight += 1;
                    self.bookings.push((booking, *instance));
                }
                Effect::Reject { ticket, rejection } => {
                    let waits = self.waiting.iter().find(|(_, line)| line.contains(&ticket));
                    let Some((model, _)) = waits else {
                        panic!("{ticket:?} got {rejection:?} but did not wait");
                    };
                    let model = model.clone();
                    self.answer(&model, ticket, false);
                }
                Effect::Start { instance, model, generation } => {
                    assert_eq!(generation, self.terms[&model].generation);
                    let vram = self.terms[&model].vram_mib;
                    let engine =
                        Engine { model, generation, life: Life::Loading, in_flight: 0, vram };
                    assert!(self.engines.insert(instance, engine).is_none(), "numbers are unique");
                }
                Effect::Stop { instance, model } => {
                    self.check_stop(&model, instance);
                    let engine = self.engines.get_mut(&instance).expect("it stops what lives");
                    assert_ne!(engine.life, Life::Stopping, "it is stopped once");
                    assert!(
                        engine.in_flight == 0 || cut_off.contains(&model),
                        "an engine with requests is stopped only at its drain limit"
                    );
                    engine.life = Life::Stopping;
                }
                Effect::Tell { model, notice: Notice::CutOff { .. } } => {
                    cut_off.insert(model);
                }
                Effect::Tell { model, notice: Notice::Draining { .. } } => self.check_drain(&model),
                Effect::Tell { .. } => {}
            }
        }
    }

    fn answer(&mut self, model: &ModelId, ticket: Ticket, in_order: bool) {
        assert!(!self.left.contains(&ticket), "who left is not answered");
        assert!(self.answered.insert(ticket), "every request is answered once");
        let line = self.waiting.get_mut(model).expect("it waits for this model");
        let place = line.iter().position(|waiting| *waiting == ticket).expect("it waits");
        assert!(!in_order || place == 0, "slots are granted in order of arrival");
        line.remove(place);
    }

    /// Everybody behaves from now on: whatever happened before, all are answered and all sleep.
    pub(super) fn come_to_rest(&mut self) {
        for terms in self.terms.values_mut() {
            terms.warmth = Warmth::None;
            terms.force_promotion = false;
        }
        self.configure();
        for _ in 0..200 {
            while !self.bookings.is_empty() {
                self.finish(0);
            }
            self.report(0, &[Life::Stopping], |instance| Report::Gone { instance });
            self.report(0, &[Life::Loading], |instance| Report::Ready {
                instance,
                address: address(instance),
            });
            self.pass(Duration::from_secs(10));
            self.check();
        }
        assert!(self.waiting.values().all(Vec::is_empty), "somebody waits for ever");
        assert!(self.engines.is_empty(), "something stays up for ever: {:?}", self.engines);
        for member in self.group.view(self.now) {
            assert_eq!((member.in_flight, member.waiting), (0, 0));
        }
    }
}

fn pick<T: Copy>(items: &[T], n: usize) -> Option<T> {
    (!items.is_empty()).then(|| items[n % items.len()])
}
