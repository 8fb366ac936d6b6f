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
    this: Weak<Shell>,
}

struct Inner {
    group: Group,
    waiters: HashMap<Ticket, oneshot::Sender<Answer>>,
    /// When the timer goes off next.
    alarm: Option<Moment>,
}

type Answer = Result<Slot, Rejection>;

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
    shell: &'a Shell,
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
        let shell = Arc::new_cyclic(|this| Self {
            id,
            clock,
            inner: Mutex::new(inner),
            earlier: Arc::new(Notify::new()),
            orders,
            this: this.clone(),
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
    pub(super) async fn wait(&self, ticket: Ticket, model: &ModelId) -> Answer {
        let (sender, answer) = oneshot::channel();
        let mut place = Place { shell: self, ticket, answered: false };
        self.step(Some((ticket, sender)), |group, now| group.arrive(now, ticket, model));
        let answer = answer.await;
        place.answered = true;
        // The sender is dropped unused only if the group forgot a ticket, which its tests exclude.
        answer.unwrap_or(Err(Rejection::Internal))
    }

    /// Puts one event into the group and carries out what follows.
    pub(super) fn act(&self, event: impl FnOnce(&mut Group, Moment) -> Effects) {
        self.step(None, event);
    }

    fn step(
        &self,
        waiter: Option<(Ticket, oneshot::Sender<Answer>)>,
        event: impl FnOnce(&mut Group, Moment) -> Effects,
    ) {
        let mut deliveries = Vec::new();
        {
            let mut inner = self.inner.lock();
            // Read under the lock: no event may be older than the one before it.
            let now = self.clock.now();
            inner.waiters.extend(waiter);
            let effects = event(&mut inner.group, now);
            for effect in effects {
                self.sort(&mut inner, effect, &mut deliveries);
            }
            let wanted = inner.group.wake_at(now);
            if wanted.is_some() && (inner.alarm.is_none() || wanted < inner.alarm) {
                inner.alarm = wanted;
                self.earlier.notify_one();
            }
        }
        for (sender, answer) in deliveries {
            // A receiver that is gone hands the slot back, and its guard returns it.
            drop(sender.send(answer));
        }
    }

    fn sort(
        &self,
        inner: &mut Inner,
        effect: Effect,
        deliveries: &mut Vec<(oneshot::Sender<Answer>, Answer)>,
    ) {
        let order = match effect {
            Effect::Grant { ticket, booking, address, .. } => {
                let Some(shell) = self.this.upgrade() else { return };
                let guard = SlotGuard { shell, booking };
                let answer = Ok(Slot { booking, address, guard });
                match inner.waiters.remove(&ticket) {
                    Some(sender) => deliveries.push((sender, answer)),
                    None => deliveries.push((oneshot::channel().0, answer)),
                }
                return;
            }
            Effect::Reject { ticket, rejection } => {
                let sender = inner.waiters.remove(&ticket);
                deliveries.extend(sender.map(|sender| (sender, Err(rejection))));
                return;
            }
            Effect::Start { instance, model, generation } => {
                Order::Start { instance, model, generation }
            }
            Effect::Stop { instance, model } => Order::Stop { instance, model },
            Effect::Tell { model, notice } => Order::Tell { model, notice },
        };
        // Nobody listens any more only while the process ends.
        let _ = self.orders.send(order);
    }

    fn alarm(&self) -> Option<Moment> {
        self.inner.lock().alarm
    }

    fn ring(&self) {
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
