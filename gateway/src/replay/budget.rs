//! How many bytes of request bodies the process holds at once, in all and of each caller, and the guard that
//! gives them back.
//!
//! Nobody holds more than is left free for all others: one caller alone half of all, two a third each. So there
//! is always room for one more. What is short counts apart, so that a caller's long bodies leave room for its short
//! ones; and it counts for nobody, and costs no look at its caller, while there is plenty.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flexinfer_core::callers::Caller;
use parking_lot::Mutex;

/// A body is long once it is longer than this, in bytes.
const SHORT: u64 = 64 * 1024;

/// While not more than this part of the budget is held, in all, what is short counts for nobody.
const PLENTY: u64 = 4;

/// The bound on all bodies held together (`--max-buffered-bytes`).
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    /// Whether there is no room for two bodies of the longest kind: then one alone may have all of it.
    narrow: bool,
    held: AtomicU64,
    shares: Mutex<HashMap<Whose, Share>>,
}

/// Whose body it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// A caller's with this name.
    Caller(Arc<str>),
    /// Of whoever has this address; of version 6, of its network.
    Peer(IpAddr),
}

/// The bodies that count for one caller.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    short: u64,
    long: u64,
    bodies: usize,
}

impl Share {
    /// The bytes of those that are as short or as long as one of `bytes` bytes.
    fn alike(&mut self, bytes: u64) -> &mut u64 {
        if bytes > SHORT { &mut self.long } else { &mut self.short }
    }

    fn add(&mut self, bytes: u64) {
        *self.alike(bytes) += bytes;
        self.bodies += 1;
    }

    fn remove(&mut self, bytes: u64) {
        let alike = self.alike(bytes);
        *alike = alike.saturating_sub(bytes);
        self.bodies = self.bodies.saturating_sub(1);
    }
}

impl Whose {
    /// Whose it is where `caller` sends it from `address`. Nobody's in particular from this machine without a
    /// key, since everybody could be behind it.
    pub fn of(caller: Option<&Caller>, address: Option<IpAddr>) -> Option<Self> {
        if let Some(caller) = caller {
            return Some(Self::Caller(Arc::clone(&caller.name)));
        }
        let address = address?.to_canonical();
        if address.is_loopback() {
            return None;
        }
        Some(Self::Peer(match address {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << 64);
                Ipv6Addr::from_bits(network).into()
            }
            IpAddr::V4(_) => address,
        }))
    }
}

impl Budget {
    /// A budget of `limit` bytes for bodies of which each has `longest` at most.
    pub fn new(limit: u64, longest: u64) -> Arc<Self> {
        let narrow = limit / 2 < longest;
        Arc::new(Self { limit, narrow, held: AtomicU64::new(0), shares: Mutex::default() })
    }

    /// The bytes held now.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// A guard that holds nothing yet, for a body of `whose`.
    pub fn open(self: &Arc<Self>, whose: Option<Whose>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0, whose, counted: None }
    }

    /// Takes `bytes`, if there are as many: what is held then.
    fn take(&self, bytes: u64) -> Option<u64> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if held > self.limit {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        Some(held)
    }

    /// Counts a body of `bytes` for `whose`, which are taken already, in place of the `before` that counted of it,
    /// unless it were more than is left then.
    fn count(&self, whose: &Whose, bytes: u64, before: Option<u64>) -> bool {
        let mut shares = self.shares.lock();
        let mut share = shares.get(whose).copied().unwrap_or_default();
        if let Some(before) = before {
            share.remove(before);
        }
        let alone = self.narrow && share.bodies == 0;
        let free = self.limit.saturating_sub(self.held());
        let fits = alone || share.alike(bytes).saturating_add(bytes) <= free;
        if fits {
            share.add(bytes);
            shares.insert(whose.clone(), share);
        }
        fits
    }

    fn uncount(&self, whose: &Whose, bytes: u64) {
        let mut shares = self.shares.lock();
        let Some(share) = shares.get_mut(whose) else { return };
        share.remove(bytes);
        if share.bodies == 0 {
            shares.remove(whose);
        }
    }
}

/// One request's part of the budget; dropping it gives the part back.
#[derive(Debug)]
pub struct Held {
    budget: Arc<Budget>,
    bytes: u64,
    whose: Option<Whose>,
    /// How many of the bytes count for its caller, if they do.
    counted: Option<u64>,
}

impl Held {
    /// Takes `bytes` more. False, and nothing taken, when the budget does not have them, or not for this caller.
    #[must_use]
    pub fn grow(&mut self, bytes: u64) -> bool {
        let Some(held) = self.budget.take(bytes) else { return false };
        let after = self.bytes + bytes;
        let counts = self.counted.is_some() || after > SHORT || held > self.budget.limit / PLENTY;
        if counts && let Some(whose) = &self.whose {
            if !self.budget.count(whose, after, self.counted) {
                self.budget.held.fetch_sub(bytes, Ordering::Relaxed);
                return false;
            }
            self.counted = Some(after);
        }
        self.bytes = after;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some((whose, counted)) = self.whose.as_ref().zip(self.counted) {
            self.budget.uncount(whose, counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn caller(name: &str) -> Whose {
        Whose::Caller(name.into())
    }

    #[test]
    fn what_a_guard_took_returns_when_it_is_dropped() {
        let budget = Budget::new(10, 10);
        let mut first = budget.open(None);
        assert!(first.grow(6));
        let mut second = budget.open(None);
        assert!(!second.grow(5), "eleven bytes must not fit into ten");
        assert!(second.grow(4));
        assert_eq!(budget.held(), 10);
        drop(first);
        assert_eq!(budget.held(), 4);
        drop(second);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn nobody_holds_more_than_is_left_for_all_others() {
        let budget = Budget::new(12 * MIB, 4 * MIB);
        let mut held: Vec<Held> = Vec::new();
        let mut holds = |whose: &str| {
            let before = held.len();
            while held.len() < before + 100 {
                let mut body = budget.open(Some(caller(whose)));
                if !body.grow(MIB) {
                    break;
                }
                held.push(body);
            }
            held.len() - before
        };
        assert_eq!((holds("a"), holds("b"), holds("c")), (6, 3, 1));
        let mut short = budget.open(Some(caller("a")));
        assert!(short.grow(SHORT), "her long ones leave room for what is short");
        let mut unknown = budget.open(None);
        assert!(unknown.grow(MIB), "who has no name has no share");
        drop((held, short, unknown));
        assert_eq!((budget.held(), budget.shares.lock().len()), (0, 0));
        let mut growing = budget.open(Some(caller("a")));
        assert!((0..6).all(|_| growing.grow(MIB)) && !growing.grow(MIB));
        assert_eq!(budget.held(), 6 * MIB);
    }

    #[test]
    fn short_bodies_of_one_caller_leave_room_for_those_of_others() {
        let budget = Budget::new(16 * MIB, MIB);
        let mut held: Vec<Held> = Vec::new();
        let mut holds = |whose: &str, size: u64| {
            let before = budget.held();
            loop {
                let mut body = budget.open(Some(caller(whose)));
                // As they come, piece by piece.
                if !(0..4).all(|_| body.grow(size / 4)) {
                    break;
                }
                held.push(body);
            }
            budget.held() - before
        };
        let quarter = 4 * MIB;
        assert_eq!(holds("a", SHORT), quarter + 6 * MIB, "a quarter, and half of the rest");
        assert_eq!(holds("b", SHORT), 3 * MIB);
        assert_eq!(holds("a", SHORT), 0);
        assert_eq!(holds("a", MIB), MIB, "long ones count apart");
        assert_eq!(holds("c", SHORT), MIB);
        drop(held);
        assert_eq!((budget.held(), budget.shares.lock().len()), (0, 0));
    }

    #[test]
    fn what_is_short_costs_no_look_at_its_caller_while_there_is_plenty() {
        let budget = Budget::new(4 * MIB, MIB);
        let mut held: Vec<Held> = (0..16).map(|_| budget.open(Some(caller("a")))).collect();
        assert!(held.iter_mut().all(|body| body.grow(SHORT)));
        assert!(budget.shares.lock().is_empty());
        let mut next = budget.open(Some(caller("a")));
        assert!(next.grow(1) && !budget.shares.lock().is_empty());
        drop(next);
        assert!(budget.shares.lock().is_empty());
    }

    #[test]
    fn where_there_is_room_for_one_body_only_it_may_have_all_of_it() {
        let budget = Budget::new(6 * MIB, 4 * MIB);
        let mut only = budget.open(Some(caller("a")));
        assert!(only.grow(2 * MIB) && only.grow(2 * MIB));
        assert!(!budget.open(Some(caller("a"))).grow(MIB), "not a second one of the same caller");
        assert!(budget.open(Some(caller("b"))).grow(MIB));
    }

    #[test]
    fn a_body_without_a_key_is_its_networks() {
        let whose = |address: &str| Whose::of(None, Some(address.parse().expect("an address")));
        assert_eq!(whose("127.0.0.1"), None);
        assert_eq!(whose("::ffff:127.0.0.1"), None);
        assert_eq!(whose("10.0.0.7"), whose("::ffff:10.0.0.7"));
        assert_ne!(whose("10.0.0.7"), whose("10.0.0.8"));
        assert_eq!(whose("2001:db8::1"), whose("2001:db8::ffff:2"));
        assert_ne!(whose("2001:db8::1"), whose("2001:db8:0:1::1"));
    }
}
