//! One group and its lock. Events go in under the lock; orders leave through a channel while it is
//! held, so that they keep their order; answers to requests are delivered after it was released.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use flexinfer_core::ids::{BookingId, GroupId, ModelId, Ticket};
use flexinfer_core::moment::Moment;
use flexinfer_core::queueing::{Effect, Effects, Group, MemberView};
use flexinfer_core::rejection::Rejection;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};

use super::clock::Clock;
use super::platform::Order;

/// A group with everything around it that waits or wakes.
pub(super) struct Shell {
    id: GroupId,
    clock: Clock,
    inner: Mutex<Inner>,
    /// Signalled when the group wants to be woken earlier than its timer is set to.
    earlier: Arc<Notify>,
    orders: mpsc::UnboundedSender<Order>,
}

struct Inner {
    group: Group,
    waiters: HashMap<Ticket, oneshot::Sender<Answer>>,
    /// When the timer goes off next.
    alarm: Option<Moment>,
}

type Answer = Result<Slot, Rejection>;

/// What comes of asking for a slot.
enum Arrival {
    Answered(Answer),
    Waits(oneshot::Receiver<Answer>),
}

/// A slot on an engine, given back when the guard is dropped.
pub(super) struct Slot {
    pub(super) booking: BookingId,
    pub(super) address: SocketAddr,
    pub(super) guard: SlotGuard,
}

/// Gives a slot back when dropped: by a request that ended, or on the way to one that has left.
pub(super) struct SlotGuard {
    shell: Arc<Shell>,
    booking: BookingId,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let booking = self.booking;
        self.shell.act(|group, now| group.finish(now, booking));
    }
}

/// A place in the queue, given up when dropped.
struct Place<'a> {
    shell: &'a Arc<Shell>,
    ticket: Ticket,
    answered: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let ticket = self.ticket;
        self.shell.inner.lock().waiters.remove(&ticket);
        self.shell.act(|group, now| group.leave(now, ticket));
    }
}

impl Shell {
    /// A shell around `group`, whose timer runs on `runtime` for as long as the shell is there.
    pub(super) fn start(
        id: GroupId,
        group: Group,
        clock: Clock,
        orders: mpsc::UnboundedSender<Order>,
        runtime: &Handle,
    ) -> Arc<Self> {
        let inner = Inner { group, waiters: HashMap::new(), alarm: None };
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

    /// Nothing is left of it.
    pub(super) fn spent(&self) -> bool {
        self.inner.lock().group.spent()
    }

    /// It has no members yet.
    pub(super) fn unused(&self) -> bool {
        self.inner.lock().group.view(self.clock.now()).is_empty()
    }

    pub(super) fn view(&self) -> Vec<MemberView> {
        self.inner.lock().group.view(self.clock.now())
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(super) async fn wait(self: &Arc<Self>, ticket: Ticket, model: &ModelId) -> Answer {
        let answer = match self.arrive(ticket, model) {
            Arrival::Answered(answer) => return answer,
            Arrival::Waits(answer) => answer,
        };
        let mut place = Place { shell: self, ticket, answered: false };
        let answer = answer.await;
        place.answered = true;
        // The sender is dropped unused only if the group forgot a ticket, which its tests exclude.
        answer.unwrap_or(Err(Rejection::Internal))
    }

    fn arrive(self: &Arc<Self>, ticket: Ticket, model: &ModelId) -> Arrival {
        self.step(|inner, now| {
            let effects = inner.group.arrive(now, ticket, model);
            let mut answers = self.carry_out(effects);
            let own = answers.iter().position(|(answered, _)| *answered == ticket);
            let arrival = match own {
                // Mostly a free slot: nothing was waited for, so nothing has to be woken.
                Some(own) => Arrival::Answered(answers.swap_remove(own).1),
                None => {
                    let (sender, answer) = oneshot::channel();
                    inner.waiters.insert(ticket, sender);
                    Arrival::Waits(answer)
                }
            };
            (arrival, answers)
        })
    }

    /// Puts one event into the group and carries out what follows.
    pub(super) fn act(self: &Arc<Self>, event: impl FnOnce(&mut Group, Moment) -> Effects) {
        self.step(|inner, now| ((), self.carry_out(event(&mut inner.group, now))));
    }

    /// Makes a change under the lock, and delivers the answers that it brings after that.
    fn step<T>(&self, change: impl FnOnce(&mut Inner, Moment) -> (T, Vec<(Ticket, Answer)>)) -> T {
        let (outcome, deliveries) = {
            let mut inner = self.inner.lock();
            // Read under the lock: no event may be older than the one before it.
            let (outcome, answers) = change(&mut inner, self.clock.now());
            let wanted = inner.group.wake_at();
            if wanted.is_some() && (inner.alarm.is_none() || wanted < inner.alarm) {
                inner.alarm = wanted;
                self.earlier.notify_one();
            }
            let to_whom = |(ticket, answer)| (inner.waiters.remove(&ticket), answer);
            (outcome, answers.into_iter().map(to_whom).collect::<Vec<_>>())
        };
        for (sender, answer) in deliveries {
            // Where nobody waits any more, the slot's guard is dropped here and returns it.
            drop(sender.map(|sender| sender.send(answer)));
        }
        outcome
    }

    /// Sends orders on while the lock is held, so that they keep their order; what is left are the
    /// answers to requests.
    fn carry_out(self: &Arc<Self>, effects: Effects) -> Vec<(Ticket, Answer)> {
        effects.into_iter().filter_map(|effect| self.answer(effect)).collect()
    }

    fn answer(self: &Arc<Self>, effect: Effect) -> Option<(Ticket, Answer)> {
        let order = match effect {
            Effect::Grant { ticket, booking, address, .. } => {
                let guard = SlotGuard { shell: Arc::clone(self), booking };
                return Some((ticket, Ok(Slot { booking, address, guard })));
            }
            Effect::Reject { ticket, rejection } => return Some((ticket, Err(rejection))),
            Effect::Start { instance, model, generation } => {
                Order::Start { instance, model, generation }
            }
            Effect::Stop { instance, model } => Order::Stop { instance, model },
            Effect::Tell { model, notice } => Order::Tell { model, notice },
        };
        // Nobody listens any more only while the process ends.
        let _ = self.orders.send(order);
        None
    }

    fn alarm(&self) -> Option<Moment> {
        self.inner.lock().alarm
    }

    fn ring(self: &Arc<Self>) {
        self.inner.lock().alarm = None;
        self.act(Group::tick);
    }
}

/// Wakes the group at the moments it asks for, for as long as there is one.
async fn keep_time(shell: Weak<Shell>, earlier: Arc<Notify>, clock: Clock) {
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

impl Drop for Shell {
    fn drop(&mut self) {
        // So that the timer's task notices.
        self.earlier.notify_one();
    }
}
