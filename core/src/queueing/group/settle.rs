//! After every event: everything that follows from the whole state.

use std::time::Duration;

use super::{Group, grant_one};
use crate::ids::{InstanceId, ModelId};
use crate::moment::Moment;
use crate::queueing::effects::{Effect, Effects, Notice};
use crate::queueing::line::{Engine, Line};
use crate::queueing::swap_wait::Leave;
use crate::rejection::Rejection;
use crate::scaling::quiet_since;
use crate::sharing::{self, Election, Member, Turn, elect, revisit_at, turn};

impl Group {
    /// Brings the group to where its state wants it, in this order: requests past their deadline
    /// are answered; the election is held; who lost it leaves; who won it starts where there is
    /// room; free slots are granted; requests that cannot be served in time are told.
    pub(super) fn settle(&mut self, now: Moment, effects: &mut Effects) {
        self.expire(now, effects);
        let members = self.members();
        let election = elect(&members, self.capacity, now);
        self.dismiss(now, &election, effects);
        self.start(now, &election, effects);
        self.grant(&election, effects);
        self.tell_the_hopeless(now, &election, effects);
        self.lines.retain(|_, line| !(line.removed && matches!(line.engine, Engine::Absent)));
        self.wake = self.next_wake(now);
    }

    /// The next moment at which something happens by itself.
    pub(super) fn next_wake(&self, now: Moment) -> Option<Moment> {
        let deadlines = self.lines.values().filter_map(|line| line.waiting.next_deadline()).min();
        let drains = self.lines.values().filter_map(|line| match &line.engine {
            Engine::Serving(serving) => Some(serving.in_the_way? + line.terms.drain_limit),
            _ => None,
        });
        let asked = self.lines.values().filter_map(|line| Some(line.asked?.until));
        let moments = drains.chain(asked).filter(|moment| *moment > now);
        moments.chain(deadlines).chain(revisit_at(&self.members(), now)).min()
    }

    fn members(&self) -> Vec<Member> {
        self.lines.values().filter(|line| !line.removed).map(Line::member).collect()
    }

    fn expire(&mut self, now: Moment, effects: &mut Effects) {
        for line in self.lines.values_mut() {
            line.asked = line.asked.filter(|asked| now < asked.until);
            for waiter in line.waiting.take_due(now) {
                let (model, waited) = (line.terms.id.clone(), now.since(waiter.since));
                let rejection = if line.open().is_none() {
                    Rejection::ActivationTimeout { model, waited, retry_in: None }
                } else {
                    Rejection::QueueTimeout { model, waited }
                };
                effects.push(Effect::Reject { ticket: waiter.ticket, rejection });
            }
        }
    }

    /// Residents that lost the election take nothing new and leave when they are done, at their
    /// drain limit at the latest; those that won it again take requests again.
    fn dismiss(&mut self, now: Moment, election: &Election, effects: &mut Effects) {
        let mut displaced: Option<Leave> = None;
        let newcomers = self.newcomers(election);
        for (id, line) in &mut self.lines {
            let outdated = line.outdated();
            let stays = !outdated && election.wants(id);
            let idle_since = line.idle_since();
            let limit = line.terms.drain_limit;
            // An edit or a removal alone breaks no stream; keeping another model out does.
            let in_the_way = !outdated || newcomers.iter().any(|newcomer| newcomer != id);
            match &mut line.engine {
                Engine::Absent | Engine::Stopping { .. } => {}
                Engine::Loading { .. } if stays => {}
                Engine::Loading { instance, .. } => {
                    let instance = *instance;
                    let notice = outdated.then_some(Notice::Replaced);
                    stop(line, instance, notice, effects);
                    if !outdated {
                        displaced = Some(Leave { begun: now, stopped: now });
                    }
                }
                Engine::Serving(serving) if stays => {
                    (serving.draining, serving.in_the_way) = (None, None);
                    serving.yielding = election.yielding.contains(id);
                }
                Engine::Serving(serving) => {
                    let in_flight = serving.in_flight;
                    let instance = serving.instance;
                    let begun = *serving.draining.get_or_insert(now);
                    serving.in_the_way = in_the_way.then(|| serving.in_the_way.unwrap_or(now));
                    let over = serving.in_the_way.is_some_and(|since| now >= since + limit);
                    if in_flight == 0 || over {
                        let asleep = line.slept(now, idle_since);
                        if !outdated && asleep.is_none() {
                            displaced = Some(Leave { begun, stopped: now });
                        }
                        let notice = match (in_flight, asleep) {
                            (0, _) if outdated => Some(Notice::Replaced),
                            (0, Some(idle)) => Some(Notice::Sleeping { idle }),
                            (0, None) => None,
                            _ => Some(Notice::CutOff { in_flight }),
                        };
                        stop(line, instance, notice, effects);
                    } else if begun == now {
                        let notice = Notice::Draining { in_flight };
                        effects.push(Effect::Tell { model: id.clone(), notice });
                    }
                }
            }
        }
        self.swap = displaced.or(self.swap);
    }

    /// The elected members that have no engine yet.
    fn newcomers(&self, election: &Election) -> Vec<ModelId> {
        let absent = |id: &&ModelId| {
            self.lines.get(*id).is_some_and(|line| matches!(line.engine, Engine::Absent))
        };
        election.residents.iter().filter(absent).cloned().collect()
    }

    fn start(&mut self, now: Moment, election: &Election, effects: &mut Effects) {
        for id in &election.residents {
            let present: Vec<(&ModelId, Option<u64>)> = self
                .lines
                .iter()
                .filter(|(_, line)| !matches!(line.engine, Engine::Absent))
                .map(|(id, line)| (id, line.engine_vram))
                .collect();
            let Some(line) = self.lines.get(id) else { continue };
            if !matches!(line.engine, Engine::Absent) {
                continue;
            }
            let sizes = present.iter().map(|(_, size)| *size);
            let room = sharing::room(sizes, line.terms.vram_mib, self.capacity);
            let leaving = present.first().map(|(id, _)| (*id).clone());
            let Some(line) = self.lines.get_mut(id) else { continue };
            if room {
                let instance = InstanceId(self.next_instance);
                self.next_instance += 1;
                order(line, instance, now, self.swap.take(), effects);
            } else if let Some(leaving) = leaving.filter(|_| !line.swap_told) {
                line.swap_told = true;
                let notice = Notice::Swapping { leaving };
                effects.push(Effect::Tell { model: id.clone(), notice });
            }
        }
    }

    fn grant(&mut self, election: &Election, effects: &mut Effects) {
        for (id, line) in &mut self.lines {
            if !election.wants(id) {
                continue;
            }
            while let Some(ticket) = line.waiting.first() {
                if !grant_one(line, &mut self.bookings, &mut self.next_booking, ticket, effects) {
                    break;
                }
                line.waiting.advance();
            }
        }
    }

    /// Requests that cannot be served before their deadline are told now, with the time left.
    fn tell_the_hopeless(&mut self, now: Moment, election: &Election, effects: &mut Effects) {
        let cold =
            |line: &Line| !line.waiting.is_empty() && !matches!(line.engine, Engine::Serving(_));
        if !self.lines.values().any(cold) {
            return;
        }
        let members = self.members();
        let loads: Vec<(ModelId, Moment, Duration)> = self
            .lines
            .iter()
            .filter_map(|(id, line)| match line.engine {
                Engine::Loading { since, .. } => Some((id.clone(), since, line.last_load?)),
                _ => None,
            })
            .collect();
        let expected =
            |id: &ModelId| loads.iter().find(|load| load.0 == *id).map(|load| (load.1, load.2));
        for (id, line) in &mut self.lines {
            if !cold(line) {
                continue;
            }
            let rejection = |ready: Moment| Rejection::NotBeforeDeadline {
                model: id.clone(),
                ready_in: now.until(ready),
            };
            let begins = match turn(&members, election, id, expected, now) {
                Turn::HeldBy(holder) => {
                    let model = id.clone();
                    let held = Rejection::HeldByHigherPriority { model, holder };
                    effects.extend(
                        line.waiting
                            .dissolve()
                            .map(|ticket| Effect::Reject { ticket, rejection: held.clone() }),
                    );
                    continue;
                }
                Turn::NotBefore(moment) => moment,
                Turn::Now => expected(id).map_or(now, |(since, _)| since),
            };
            let ready = begins + line.last_load.unwrap_or_default();
            effects.extend(line.waiting.take_hopeless(ready).into_iter().map(|waiter| {
                Effect::Reject { ticket: waiter.ticket, rejection: rejection(ready) }
            }));
        }
    }
}

impl Line {
    fn idle_since(&self) -> Option<Moment> {
        match &self.engine {
            Engine::Serving(serving) => Some(quiet_since(&self.activity(), serving.since)),
            _ => None,
        }
    }

    /// How long it has been idle, if it leaves because of that and not for another.
    fn slept(&self, now: Moment, idle_since: Option<Moment>) -> Option<Duration> {
        let idle = now.since(idle_since?);
        (self.activity().idle() && idle >= self.terms.idle_timeout).then_some(idle)
    }
}

fn stop(line: &mut Line, instance: InstanceId, notice: Option<Notice>, effects: &mut Effects) {
    let model = line.terms.id.clone();
    if let Some(notice) = notice {
        effects.push(Effect::Tell { model: model.clone(), notice });
    }
    line.engine = Engine::Stopping { instance };
    effects.push(Effect::Stop { instance, model });
}

fn order(
    line: &mut Line,
    instance: InstanceId,
    now: Moment,
    leave: Option<Leave>,
    effects: &mut Effects,
) {
    let swap = leave.zip(line.waiting.since()).map(|(leave, since)| leave.wait(since, now));
    let swapped_in = leave.map(|leave| leave.stopped);
    line.last_swap = swap.or(line.last_swap);
    let model = line.terms.id.clone();
    let generation = line.terms.generation;
    line.swap_told = false;
    line.asked = None;
    line.engine_vram = line.terms.vram_mib;
    line.bar = None;
    line.engine = Engine::Loading { instance, generation, since: now, swapped_in, progress: None };
    let notice = Notice::Waking { waiting: line.waiting.len(), swap };
    effects.push(Effect::Tell { model: model.clone(), notice });
    effects.push(Effect::Start { instance, model, generation });
}
