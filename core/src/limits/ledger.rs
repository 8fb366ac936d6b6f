//! The accounts of all limits. A request is checked against everything that applies to it and charged
//! all of it at once, or nothing (RATE-03); a charge is given back where no engine saw the request, and
//! settled by what was really used where one did.
//!
//! Accounts are kept for models that exist and callers that have a key, never for a name that a client
//! made up, and those that are full again are let go of (RATE-05).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::rate::{Bucket, Spent};
use super::{CallerLimits, Rate};
use crate::callers::Caller;
use crate::ids::ModelId;
use crate::moment::Moment;

/// When fewer accounts than these are open, none is looked for to be closed.
const FEW: usize = 64;
/// What a request waits that comes beside as many as may be: nobody knows when one of them ends.
const WHILE_OTHERS_RUN: Duration = Duration::from_secs(1);

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
    /// What is left of it.
    pub left: u64,
    /// How long until enough is there again; `None` where the limit is zero and waiting does not help.
    pub retry_in: Option<Duration>,
}

/// How a caller stands after a request: the limit, what is left, and when all of it is back.
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
    caller: Option<Arc<str>>,
    global: Option<Spent>,
    per_model: Option<Spent>,
    requests: Option<Spent>,
    /// The tokens reserved, with the rate that they were reserved by.
    tokens: Option<(Rate, u64, Spent)>,
    /// How the caller stood right after it.
    pub standing: Standing,
}

/// One caller's accounts.
#[derive(Debug, Default)]
struct Account {
    requests: Bucket,
    running: u32,
    tokens: HashMap<ModelId, Bucket>,
}

/// All accounts of one gateway.
#[derive(Debug)]
pub struct Ledger {
    policy: Policy,
    global: Bucket,
    models: HashMap<ModelId, Bucket>,
    callers: HashMap<Arc<str>, Account>,
    /// How many accounts there may be before those that are at rest are closed.
    sweep_at: usize,
}

impl Ledger {
    /// Accounts under `policy`, all of them full.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            global: Bucket::default(),
            models: HashMap::new(),
            callers: HashMap::new(),
            sweep_at: FEW,
        }
    }

    /// Whether `need` could be charged at `now`; if not, the limit that is in the way for longest.
    pub fn check(&self, need: &Need<'_>, now: Moment) -> Result<(), Limited> {
        let limits = caller_limits(need);
        let account = need.caller.and_then(|caller| self.callers.get(&caller.name));
        let own = |bucket: fn(&Account) -> Bucket| account.map(bucket).unwrap_or_default();
        let of_model = self.models.get(need.model).copied().unwrap_or_default();
        let tokens = account.and_then(|account| account.tokens.get(need.model));
        let over_time = |scope, unit, rate: Option<Rate>, bucket: Bucket, units| {
            refusal(scope, unit, rate?, bucket, units, now)
        };
        let found = [
            over_time(Scope::Global, Unit::Requests, self.policy.global, self.global, 1),
            over_time(Scope::PerModel, Unit::Requests, self.policy.per_model, of_model, 1),
            over_time(
                Scope::PerCaller,
                Unit::Requests,
                limits.requests,
                own(|account| account.requests),
                1,
            ),
            beside(limits.concurrent, account.map_or(0, |account| account.running)),
            over_time(
                Scope::PerCaller,
                Unit::Tokens,
                limits.tokens,
                tokens.copied().unwrap_or_default(),
                need.tokens,
            ),
        ];
        let longest = |limited: &Limited| limited.retry_in.unwrap_or(Duration::MAX);
        found.into_iter().flatten().max_by_key(longest).map_or(Ok(()), Err)
    }

    /// Charges `need` against everything that applies to it, or nothing.
    pub fn charge(&mut self, need: &Need<'_>, now: Moment) -> Result<Charge, Limited> {
        self.check(need, now)?;
        self.sweep(now);
        let limits = caller_limits(need);
        let spend = |bucket: &mut Bucket, rate: Rate| bucket.spend(rate.cost(1), now);
        let global = self.policy.global.map(|rate| spend(&mut self.global, rate));
        let per_model = self
            .policy
            .per_model
            .map(|rate| spend(self.models.entry(need.model.clone()).or_default(), rate));
        let mut charge = Charge {
            model: need.model.clone(),
            caller: None,
            global,
            per_model,
            requests: None,
            tokens: None,
            standing: Standing::default(),
        };
        let Some(caller) = need.caller.filter(|_| limits.any()) else { return Ok(charge) };
        let account = self.callers.entry(Arc::clone(&caller.name)).or_default();
        account.running += 1;
        charge.caller = Some(Arc::clone(&caller.name));
        if let Some(rate) = limits.requests {
            charge.requests = Some(spend(&mut account.requests, rate));
            charge.standing.requests = Some(standing(rate, account.requests, now));
        }
        if let Some(rate) = limits.tokens {
            let bucket = account.tokens.entry(need.model.clone()).or_default();
            // What can never be there at once is charged as all there is; settling sees to the rest.
            let reserved = need.tokens.min(u64::from(rate.burst));
            charge.tokens = Some((rate, reserved, bucket.spend(rate.cost(reserved), now)));
            charge.standing.tokens = Some(standing(rate, *bucket, now));
        }
        Ok(charge)
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
        let Some(account) = charge.caller.and_then(|name| self.callers.get_mut(&name)) else {
            return;
        };
        account.running = account.running.saturating_sub(1);
        restore(Some(&mut account.requests), charge.requests);
        let tokens = charge.tokens.map(|(_, _, spent)| spent);
        restore(account.tokens.get_mut(&charge.model), tokens);
    }

    /// The request is over, and took `used` tokens (`None`: as many as were reserved): those, and not
    /// the reserved ones, are charged.
    pub fn settle(&mut self, charge: Charge, used: Option<u64>, now: Moment) {
        let Some(account) = charge.caller.and_then(|name| self.callers.get_mut(&name)) else {
            return;
        };
        account.running = account.running.saturating_sub(1);
        let Some((rate, reserved, spent)) = charge.tokens else { return };
        let used = used.unwrap_or(reserved);
        let bucket = account.tokens.entry(charge.model).or_default();
        if used <= reserved {
            bucket.give_back(spent, rate.cost(reserved - used), now);
        } else {
            bucket.spend(rate.cost(used - reserved), now);
        }
    }

    /// How many accounts are open, for tests and debug pages.
    pub fn accounts(&self) -> usize {
        let tokens: usize = self.callers.values().map(|account| account.tokens.len()).sum();
        self.models.len() + self.callers.len() + tokens
    }

    /// Closes what is at rest, once there is much. A full account and none are the same.
    fn sweep(&mut self, now: Moment) {
        if self.accounts() < self.sweep_at {
            return;
        }
        let full = |bucket: &Bucket| bucket.full_in(now).is_zero();
        self.models.retain(|_, bucket| !full(bucket));
        self.callers.retain(|_, account| {
            // Where something runs its reservation is to be settled with.
            let running = account.running > 0;
            account.tokens.retain(|_, bucket| running || !full(bucket));
            running || !full(&account.requests) || !account.tokens.is_empty()
        });
        self.sweep_at = FEW.max(2 * self.accounts());
    }
}

fn caller_limits(need: &Need<'_>) -> CallerLimits {
    need.caller.map(|caller| caller.limits).unwrap_or_default()
}

fn standing(rate: Rate, bucket: Bucket, now: Moment) -> (u32, u64, Duration) {
    (rate.burst, bucket.left(rate, now), bucket.full_in(now))
}

fn refusal(
    scope: Scope,
    unit: Unit,
    rate: Rate,
    bucket: Bucket,
    units: u64,
    now: Moment,
) -> Option<Limited> {
    if rate.units == 0 {
        return Some(Limited { scope, unit, limit: 0, left: 0, retry_in: None });
    }
    let wait = bucket.wait(rate, units, now);
    let left = bucket.left(rate, now);
    (!wait.is_zero()).then_some(Limited {
        scope,
        unit,
        limit: rate.burst,
        left,
        retry_in: Some(wait),
    })
}

fn beside(most: Option<u32>, running: u32) -> Option<Limited> {
    let limit = most?;
    let retry_in = (limit > 0).then_some(WHILE_OTHERS_RUN);
    (running >= limit).then_some(Limited {
        scope: Scope::PerCaller,
        unit: Unit::Concurrent,
        limit,
        left: 0,
        retry_in,
    })
}
