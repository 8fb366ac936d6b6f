//! The ledger of all limits under its lock, and a request's charge as a guard: however the request
//! ends, what it was charged comes back to the ledger, given back or settled.

use std::sync::Arc;
use std::time::Instant;

use flexinfer_core::callers::Caller;
use flexinfer_core::limits::{Charge, Ledger, Limited, Need, Policy, Standing, Used};
use flexinfer_core::moment::Moment;
use parking_lot::Mutex;

/// The accounts of one gateway.
pub struct Accounts {
    origin: Instant,
    limited: bool,
    ledger: Mutex<Ledger>,
}

impl Accounts {
    /// Accounts under `policy`, all of them full.
    pub fn new(policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            origin: Instant::now(),
            limited: policy.global.is_some() || policy.per_model.is_some(),
            ledger: Mutex::new(Ledger::new(policy)),
        })
    }

    /// Whether `need` could be charged now.
    pub(crate) fn check(&self, need: &Need<'_>) -> Result<(), Limited> {
        if !self.applies(need) {
            return Ok(());
        }
        self.ledger.lock().check(need, self.now())
    }

    /// Charges `need`, if any limit applies to it.
    pub(crate) fn charge(self: &Arc<Self>, need: &Need<'_>) -> Result<Option<Charged>, Limited> {
        if !self.applies(need) {
            return Ok(None);
        }
        let charge = self.ledger.lock().charge(need, self.now())?;
        let end = End::Unseen;
        Ok(Some(Charged { accounts: Arc::clone(self), charge: Some(charge), end }))
    }

    /// Requests that nothing limits do not meet at the lock.
    fn applies(&self, need: &Need<'_>) -> bool {
        self.limited || need.caller.is_some_and(Caller::is_limited)
    }

    fn now(&self) -> Moment {
        Moment::after_origin(self.origin.elapsed())
    }
}

/// What a request was charged, until it is dropped.
pub(crate) struct Charged {
    accounts: Arc<Accounts>,
    charge: Option<Charge>,
    end: End,
}

/// How the charge ends if the request ends now.
#[derive(Clone, Copy)]
enum End {
    /// No engine has seen the request.
    Unseen,
    /// One has, and it is charged so much.
    Used(Used),
}

impl Charged {
    /// An engine sees the request now.
    pub(crate) fn seen(&mut self) {
        if matches!(self.end, End::Unseen) {
            self.end = End::Used(Used::Reserved);
        }
    }

    /// The engine that saw it has not begun with it, and says so.
    pub(crate) fn unseen(&mut self) {
        self.end = End::Unseen;
    }

    /// It is charged so much; without effect where no engine saw it.
    pub(crate) fn used(&mut self, used: Used) {
        if let End::Used(end) = &mut self.end {
            *end = used;
        }
    }

    /// It has taken so many tokens so far, and goes on. An error where the caller has none left.
    pub(crate) fn uses(&mut self, tokens: u64) -> Result<(), Limited> {
        self.used(Used::Tokens(tokens));
        let Some(charge) = &mut self.charge else { return Ok(()) };
        let now = self.accounts.now();
        self.accounts.ledger.lock().extend(charge, tokens, now)
    }

    /// How the caller stood right after the charge.
    pub(crate) fn standing(&self) -> Standing {
        self.charge.as_ref().map(|charge| charge.standing).unwrap_or_default()
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        let Some(charge) = self.charge.take() else { return };
        let now = self.accounts.now();
        let mut ledger = self.accounts.ledger.lock();
        match self.end {
            End::Unseen => ledger.give_back(charge, now),
            End::Used(used) => ledger.settle(charge, used, now),
        }
    }
}
