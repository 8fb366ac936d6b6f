//! One machine and its lock. Events go in under the lock; orders leave through a channel while it is
//! held, so that they keep their order; answers to requests are delivered after it was released.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use flexinfer_core::ids::{BookingId, EndpointId, GroupId, Ticket};
use flexinfer_core::moment::Moment;
use flexinfer_core::queueing::{Group, MemberView};
use flexinfer_core::rejection::Rejection;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};

use super::clock::Clock;
use super::machine::{Machine, Sorted};

/// A machine with everything around it that waits or wakes.
pub(crate) struct Shell<M: Machine> {
    id: GroupId,
    clock: Clock,
    inner: Mutex<Inner<M>>,
    /// Signalled when the machine wants to be woken earlier than its timer is set to.
    earlier: Arc<Notify>,
    orders: mpsc::UnboundedSender<M::Order>,
}

struct Inner<M: Machine> {
    machine: M,
    waiters: HashMap<Ticket, oneshot::Sender<Answer<M>>, RandomState>,
    /// When the timer goes off next.
    alarm: Option<Moment>,
}

type Answer<M> = Result<Slot<M>, Rejection>;

/// What comes of asking for a slot.
enum Arrival<M: Machine> {
    Answered(Answer<M>),
    Waits(oneshot::Receiver<Answer<M>>),
}

/// A slot on an engine, given back when the guard is dropped.
pub(crate) struct Slot<M: Machine> {
    pub(crate) booking: BookingId,
    pub(crate) address: SocketAddr,
    /// Which of several engines it is, where there can be several.
    pub(crate) endpoint: Option<EndpointId>,
    pub(crate) guard: SlotGuard<M>,
}

/// Gives a slot back when dropped: by a request that ended, or on the way to one that has left.
pub(crate) struct SlotGuard<M: Machine> {
    shell: Arc<Shell<M>>,
    booking: BookingId,
}

impl<M: Machine> Drop for SlotGuard<M> {
    fn drop(&mut self) {
        let booking = self.booking;
        self.shell.act(|machine, now| machine.finish(now, booking));
    }
}

/// A place in the queue, given up when dropped.
struct Place<'a, M: Machine> {
    shell: &'a Arc<Shell<M>>,
    ticket: Ticket,
    answered: bool,
}

impl<M: Machine> Drop for Place<'_, M> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let ticket = self.ticket;
        self.shell.inner.lock().waiters.remove(&ticket);
        self.shell.act(|machine, now| machine.leave(now, ticket));
    }
}

impl Shell<Group> {
    /// Nothing is left of it.
    pub(super) fn spent(&self) -> bool {
        self.look(Group::spent)
    }

    /// It has no members yet.
    pub(super) fn unused(&self) -> bool {
        self.view().is_empty()
    }

    pub(super) fn view(&self) -> Vec<MemberView> {
        let now = self.clock.now();
        self.look(|group| group.view(now))
    }
}

impl<M: Machine> Shell<M> {
    /// A shell around `machine`, whose timer runs on `runtime` for as long as the shell is there.
    pub(crate) fn start(
        id: GroupId,
        machine: M,
        clock: Clock,
        orders: mpsc::UnboundedSender<M::Order>,
        runtime: &Handle,
    ) -> Arc<Self> {
        let inner = Inner { machine, waiters: HashMap::default(), alarm: None };
        let shell = Arc::new(Self {
            id,
            clock,
            inner: Mutex::new(inner),
            earlier: Arc::new(Notify::new()),
            orders,
        });
        let earlier = Arc::clone(&shell.earlier);
        runtime.spawn(keep_time(Arc::downgrade(&shell), earlier, clock));
        shell
    }

    pub(super) fn id(&self) -> &GroupId {
        &self.id
    }

    /// Reads the machine's state.
    pub(crate) fn look<R>(&self, read: impl FnOnce(&M) -> R) -> R {
        read(&self.inner.lock().machine)
    }

    /// Waits for a slot, having put the arrival of `ticket` into the machine. Dropping the future leaves
    /// the queue.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        ticket: Ticket,
        arrive: impl FnOnce(&mut M, Moment) -> Vec<M::Effect>,
    ) -> Answer<M> {
        let answer = match self.arrive(ticket, arrive) {
            Arrival::Answered(answer) => return answer,
            Arrival::Waits(answer) => answer,
        };
        let mut place = Place { shell: self, ticket, answered: false };
        let answer = answer.await;
        place.answered = true;
        // The sender is dropped unused only if the machine forgot a ticket, which its tests exclude.
        answer.unwrap_or(Err(Rejection::Internal))
    }

    fn arrive(
        self: &Arc<Self>,
        ticket: Ticket,
        arrive: impl FnOnce(&mut M, Moment) -> Vec<M::Effect>,
    ) -> Arrival<M> {
        self.step(|inner, now| {
            let (mut own, mut others) = (None, Vec::new());
            for effect in arrive(&mut inner.machine, now) {
                match self.answer(effect) {
                    // Mostly a free slot: nothing was waited for, so nothing has to be woken.
                    Some((answered, answer)) if answered == ticket => own = Some(answer),
                    another => others.extend(another),
                }
            }
            let arrival = own.map_or_else(
                || {
                    let (sender, answer) = oneshot::channel();
                    inner.waiters.insert(ticket, sender);
                    Arrival::Waits(answer)
                },
                Arrival::Answered,
            );
            (arrival, others)
        })
    }

    /// Puts one event into the machine and carries out what follows.
    pub(crate) fn act(self: &Arc<Self>, event: impl FnOnce(&mut M, Moment) -> Vec<M::Effect>) {
        self.step(|inner, now| ((), self.carry_out(event(&mut inner.machine, now))));
    }

    /// Makes a change under the lock, and delivers the answers that it brings after that.
    fn step<T>(
        &self,
        change: impl FnOnce(&mut Inner<M>, Moment) -> (T, Vec<(Ticket, Answer<M>)>),
    ) -> T {
        let (outcome, deliveries) = {
            let mut inner = self.inner.lock();
            // Read under the lock: no event may be older than the one before it.
            let now = self.clock.now();
            let (outcome, answers) = change(&mut inner, now);
            let wanted = inner.machine.wake_at(now);
            if wanted.is_some() && (inner.alarm.is_none() || wanted < inner.alarm) {
                inner.alarm = wanted;
                self.earlier.notify_one();
            }
            let to_whom = |(ticket, answer)| (inner.waiters.remove(&ticket), answer);
            // Extended, since mostly there are none, and collecting would look at the room they took.
            let mut deliveries = Vec::new();
            deliveries.extend(answers.into_iter().map(to_whom));
            (outcome, deliveries)
        };
        for (sender, answer) in deliveries {
            // Where nobody waits any more, the slot's guard is dropped here and returns it.
            drop(sender.map(|sender| sender.send(answer)));
        }
        outcome
    }

    /// Sends orders on while the lock is held, so that they keep their order; what is left are the
    /// answers to requests.
    fn carry_out(self: &Arc<Self>, effects: Vec<M::Effect>) -> Vec<(Ticket, Answer<M>)> {
        let mut answers = Vec::new();
        answers.extend(effects.into_iter().filter_map(|effect| self.answer(effect)));
        answers
    }

    fn answer(self: &Arc<Self>, effect: M::Effect) -> Option<(Ticket, Answer<M>)> {
        match M::sort(effect) {
            Sorted::Grant { ticket, booking, address, endpoint } => {
                let guard = SlotGuard { shell: Arc::clone(self), booking };
                Some((ticket, Ok(Slot { booking, address, endpoint, guard })))
            }
            Sorted::Reject { ticket, rejection } => Some((ticket, Err(rejection))),
            Sorted::Order(order) => {
                // Nobody listens any more only while the process ends.
                let _ = self.orders.send(order);
                None
            }
        }
    }

    fn alarm(&self) -> Option<Moment> {
        self.inner.lock().alarm
    }

    fn ring(self: &Arc<Self>) {
        self.inner.lock().alarm = None;
        self.act(M::tick);
    }
}

/// Wakes the machine at the moments it asks for, for as long as there is one.
async fn keep_time<M: Machine>(shell: Weak<Shell<M>>, earlier: Arc<Notify>, clock: Clock) {
    while let Some(alarm) = shell.upgrade().map(|shell| shell.alarm()) {
        let Some(moment) = alarm else {
            earlier.notified().await;
            continue;
        };
        tokio::select! {
            () = tokio::time::sleep_until(clock.instant(moment)) => {
                if let Some(shell) = shell.upgrade() {
                    shell.ring();
                }
            }
            () = earlier.notified() => {}
        }
    }
}

impl<M: Machine> Drop for Shell<M> {
    fn drop(&mut self) {
        // So that the timer's task notices.
        self.earlier.notify_one();
    }
}
