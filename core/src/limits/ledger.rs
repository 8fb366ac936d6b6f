//! The accounts of all limits. A request is checked against everything that applies to it and charged
//! all of it at once, or nothing (RATE-03); a charge is given back where no engine saw the request, and
//! settled by what was really used where one did.
//!
//! Accounts are kept for models that exist, callers that have a key and tenants of the keys file, never
//! for a name that a client made up, and those that are full again are let go of (RATE-05).

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::account::{Account, Accounts, Held, change_bucket, holders, refusal};
use super::rate::{Bucket, Spent};
use super::{Rate, Used};
use crate::callers::Caller;
use crate::ids::ModelId;
use crate::moment::Moment;

/// When fewer accounts than these are open, none is looked for to be closed.
const FEW: usize = 64;

/// The most accounts that one charge opens: its model's, and of caller and tenant each their own and the one
/// of their tokens for that model.
const OPENED_AT_ONCE: usize = 5;

/// The limits that hold whoever asks. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Requests for all models together.
    pub global: Option<Rate>,
    /// Requests for each model.
    pub per_model: Option<Rate>,
}

/// What one request needs.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// The model it is for, as it was resolved.
    pub model: &'a ModelId,
    /// Who asks, where callers are known.
    pub caller: Option<&'a Caller>,
    /// The tokens it may take: see [`Demand`](super::Demand).
    pub tokens: u64,
}

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Scope {
    /// The gateway's.
    Global,
    /// The model's.
    PerModel,
    /// The caller's.
    PerCaller,
    /// That of all callers of one tenant together.
    PerTenant,
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Requests over time.
    Requests,
    /// Requests at the same time.
    Concurrent,
    /// Tokens over time.
    Tokens,
}

/// Why a request may not go on now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// Whose limit it is.
    pub scope: Scope,
    /// Of what.
    pub unit: Unit,
    /// The limit: units at once.
    pub limit: u32,
    /// How fast they come back, where it is one over time.
    pub rate: Option<Rate>,
    /// What is left of it.
    pub left: u64,
    /// How long until enough is there again; `None` where the limit is zero and waiting does not help.
    pub retry_in: Option<Duration>,
}

/// How a caller stands after a request, or its tenant where that has less left: the limit, what is left,
/// and when all of it is back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Of its requests over time.
    pub requests: Option<(u32, u64, Duration)>,
    /// Of its tokens over time, for the model that it asked for.
    pub tokens: Option<(u32, u64, Duration)>,
}

/// What a request was charged. Must come back to its ledger by [`Ledger::give_back`] or
/// [`Ledger::settle`]; whoever holds one sees to that by a guard.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a charge that does not come back is charged for ever"]
pub struct Charge {
    model: ModelId,
    global: Option<Spent>,
    per_model: Option<Spent>,
    /// What its caller was charged, and its tenant.
    held: [Option<Held>; 2],
    /// How the caller stood right after it.
    pub standing: Standing,
}

/// All accounts of one gateway.
#[derive(Debug)]
pub struct Ledger {
    policy: Policy,
    global: Bucket,
    models: HashMap<ModelId, Bucket, RandomState>,
    holders: Accounts,
    /// How many accounts there may be before those that are at rest are closed.
    sweep_at: usize,
    /// How many charges cannot bring it to that, so that they need not be counted.
    sure: usize,
}

impl Ledger {
    /// Accounts under `policy`, all of them full.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            global: Bucket::default(),
            models: HashMap::default(),
            holders: Accounts::default(),
            sweep_at: FEW,
            sure: 0,
        }
    }

    /// Whether `need` could be charged at `now`; if not, the limit that is in the way for longest.
    pub fn check(&self, need: &Need<'_>, now: Moment) -> Result<(), Limited> {
        let of_model = self.models.get(need.model).copied().unwrap_or_default();
        let for_all = [
            (Scope::Global, self.policy.global, self.global),
            (Scope::PerModel, self.policy.per_model, of_model),
        ];
        let for_all = for_all.into_iter().filter_map(|(scope, rate, bucket)| {
            refusal(scope, Unit::Requests, rate?, bucket, 1, now)
        });
        let of_holders = holders(need).into_iter().flatten().flat_map(|holder| {
            let account = self.holders.of(holder.kind, holder.name);
            Account::refusals(account, &holder, need, now)
        });
        let longest = |limited: &Limited| limited.retry_in.unwrap_or(Duration::MAX);
        for_all.chain(of_holders.flatten()).max_by_key(longest).map_or(Ok(()), Err)
    }

    /// Charges `need` against everything that applies to it, or nothing.
    pub fn charge(&mut self, need: &Need<'_>, now: Moment) -> Result<Charge, Limited> {
        self.check(need, now)?;
        self.sweep(now);
        let spend = |bucket: &mut Bucket, rate: Rate| bucket.spend(rate.cost(1), now);
        let global = self.policy.global.map(|rate| spend(&mut self.global, rate));
        let per_model = self
            .policy
            .per_model
            .map(|rate| change_bucket(&mut self.models, need.model, |bucket| spend(bucket, rate)));
        let mut standing = Standing::default();
        let held = holders(need).map(|holder| {
            let holder = holder?;
            let (held, stands) = self.holders.open(&holder).charge(&holder, need, now);
            standing = standing.or_less(stands);
            Some(held)
        });
        Ok(Charge { model: need.model.clone(), global, per_model, held, standing })
    }

    /// No engine has seen the request: all that it was charged is there again.
    pub fn give_back(&mut self, charge: Charge, now: Moment) {
        let restore = |bucket: Option<&mut Bucket>, spent: Option<Spent>| {
            if let (Some(bucket), Some(spent)) = (bucket, spent) {
                bucket.give_back(spent, spent.cost, now);
            }
        };
        restore(Some(&mut self.global), charge.global);
        restore(self.models.get_mut(&charge.model), charge.per_model);
        for held in charge.held.into_iter().flatten() {
            if let Some(account) = self.holders.of_mut(held.kind, &held.name) {
                account.give_back(&held, &charge.model, now);
            }
        }
    }

    /// The request goes on and has used `used` tokens so far: what is more than was reserved is charged now. An error
    /// where nothing is left then: for how long.
    pub fn extend(&mut self, charge: &mut Charge, used: u64, now: Moment) -> Result<(), Limited> {
        let mut limited = None;
        for held in charge.held.iter_mut().flatten() {
            if let Some(account) = self.holders.of_mut(held.kind, &held.name) {
                limited = account.extend(held, &charge.model, used, now).or(limited);
            }
        }
        limited.map_or(Ok(()), Err)
    }

    /// The request is over: the tokens that it `used`, and not the reserved ones, are charged.
    pub fn settle(&mut self, charge: Charge, used: Used, now: Moment) {
        for held in charge.held.into_iter().flatten() {
            if let Some(account) = self.holders.of_mut(held.kind, &held.name) {
                account.settle(&held, &charge.model, used, now);
            }
        }
    }

    /// How many accounts are open, for tests and debug pages.
    pub fn accounts(&self) -> usize {
        self.models.len() + self.holders.count()
    }

    /// Closes what is at rest, once there is much. A full account and none are the same.
    fn sweep(&mut self, now: Moment) {
        if self.sure > 0 {
            self.sure -= 1;
            return;
        }
        if self.accounts() >= self.sweep_at {
            self.models.retain(|_, bucket| !bucket.full_in(now).is_zero());
            self.holders.sweep(now);
            self.sweep_at = FEW.max(2 * self.accounts());
        }
        self.sure = (self.sweep_at - self.accounts()) / OPENED_AT_ONCE;
    }
}

impl Standing {
    /// Of each kind, what has less left.
    fn or_less(self, other: Self) -> Self {
        let less = |one: Option<(u32, u64, Duration)>, other: Option<(u32, u64, Duration)>| {
            one.into_iter().chain(other).min_by_key(|(_, left, _)| *left)
        };
        Self {
            requests: less(self.requests, other.requests),
            tokens: less(self.tokens, other.tokens),
        }
    }
}
