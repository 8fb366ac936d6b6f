//! The accounts of one who has limits, a caller or a tenant: looked at, charged, given back and settled
//! alike.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::ledger::{Limited, Need, Scope, Standing, Unit};
use super::rate::{Bucket, Spent};
use super::{CallerLimits, Rate, Used};
use crate::ids::ModelId;
use crate::moment::Moment;

/// What a request waits that comes beside as many as may be: nobody knows when one of them ends.
const WHILE_OTHERS_RUN: Duration = Duration::from_secs(1);

/// Somebody with limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a Arc<str>,
    pub(super) limits: &'a CallerLimits,
}

/// What somebody with limits is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Caller,
    Tenant,
}

impl Kind {
    const fn scope(self) -> Scope {
        match self {
            Self::Caller => Scope::PerCaller,
            Self::Tenant => Scope::PerTenant,
        }
    }
}

/// Everybody with limits whose accounts `need` touches: the caller, then its tenant.
pub(super) fn holders<'a>(need: &Need<'a>) -> [Option<Holder<'a>>; 2] {
    let Some(caller) = need.caller else { return [None, None] };
    let own = Holder { kind: Kind::Caller, name: &caller.name, limits: &caller.limits };
    let shared = caller.tenant.as_ref().map(|tenant| Holder {
        kind: Kind::Tenant,
        name: &tenant.name,
        limits: &tenant.limits,
    });
    [Some(own), shared].map(|holder| holder.filter(|holder| holder.limits.any()))
}

/// The accounts of everybody.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    callers: HashMap<Arc<str>, Account, RandomState>,
    tenants: HashMap<Arc<str>, Account, RandomState>,
}

impl Accounts {
    pub(super) fn of(&self, kind: Kind, name: &str) -> Option<&Account> {
        match kind {
            Kind::Caller => self.callers.get(name),
            Kind::Tenant => self.tenants.get(name),
        }
    }

    pub(super) fn of_mut(&mut self, kind: Kind, name: &str) -> Option<&mut Account> {
        self.all_of(kind).get_mut(name)
    }

    /// The account of `holder`, opened where it has none.
    pub(super) fn open(&mut self, holder: &Holder<'_>) -> &mut Account {
        self.all_of(holder.kind).entry(Arc::clone(holder.name)).or_default()
    }

    /// How many accounts these are.
    pub(super) fn count(&self) -> usize {
        self.callers.values().chain(self.tenants.values()).map(Account::count).sum()
    }

    /// Closes those that are at rest.
    pub(super) fn sweep(&mut self, now: Moment) {
        self.callers.retain(|_, account| account.sweep(now));
        self.tenants.retain(|_, account| account.sweep(now));
    }

    fn all_of(&mut self, kind: Kind) -> &mut HashMap<Arc<str>, Account, RandomState> {
        match kind {
            Kind::Caller => &mut self.callers,
            Kind::Tenant => &mut self.tenants,
        }
    }
}

/// What a holder was charged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) kind: Kind,
    pub(super) name: Arc<str>,
    requests: Option<Spent>,
    /// The tokens reserved, with the rate that they were reserved by.
    tokens: Option<(Rate, u64, Spent)>,
}

/// One holder's accounts.
#[derive(Debug, Default)]
pub(super) struct Account {
    requests: Bucket,
    running: u32,
    tokens: HashMap<ModelId, Bucket, RandomState>,
}

impl Account {
    /// What of `limits` is in the way of `need`.
    pub(super) fn refusals(
        account: Option<&Self>,
        holder: &Holder<'_>,
        need: &Need<'_>,
        now: Moment,
    ) -> [Option<Limited>; 3] {
        let (scope, limits) = (holder.kind.scope(), holder.limits);
        let requests = account.map(|account| account.requests).unwrap_or_default();
        let tokens = account.and_then(|account| account.tokens.get(need.model));
        let over_time = |unit, rate: Option<Rate>, bucket: Bucket, units| {
            refusal(scope, unit, rate?, bucket, units, now)
        };
        [
            over_time(Unit::Requests, limits.requests, requests, 1),
            beside(scope, limits.concurrent, account.map_or(0, |account| account.running)),
            over_time(
                Unit::Tokens,
                limits.tokens,
                tokens.copied().unwrap_or_default(),
                need.tokens,
            ),
        ]
    }

    /// Charges `need`, which was found to fit, and says how its holder stands now.
    pub(super) fn charge(
        &mut self,
        holder: &Holder<'_>,
        need: &Need<'_>,
        now: Moment,
    ) -> (Held, Standing) {
        self.running += 1;
        let Holder { kind, name, limits } = *holder;
        let mut held = Held { kind, name: Arc::clone(name), requests: None, tokens: None };
        let mut now_stands = Standing::default();
        if let Some(rate) = limits.requests {
            held.requests = Some(self.requests.spend(rate.cost(1), now));
            now_stands.requests = Some(standing(rate, self.requests, now));
        }
        if let Some(rate) = limits.tokens {
            let reserved = rate.reserved(need.tokens);
            let (spent, bucket) = change_bucket(&mut self.tokens, need.model, |bucket| {
                (bucket.spend(rate.cost(reserved), now), *bucket)
            });
            held.tokens = Some((rate, reserved, spent));
            now_stands.tokens = Some(standing(rate, bucket, now));
        }
        (held, now_stands)
    }

    /// All that was charged is there again.
    pub(super) fn give_back(&mut self, held: &Held, model: &ModelId, now: Moment) {
        self.running = self.running.saturating_sub(1);
        if let Some(spent) = held.requests {
            self.requests.give_back(spent, spent.cost, now);
        }
        if let (Some((_, _, spent)), Some(bucket)) = (held.tokens, self.tokens.get_mut(model)) {
            bucket.give_back(spent, spent.cost, now);
        }
    }

    /// What was `used`, and not what was reserved, is charged.
    pub(super) fn settle(&mut self, held: &Held, model: &ModelId, used: Used, now: Moment) {
        self.running = self.running.saturating_sub(1);
        let Some((rate, reserved, spent)) = held.tokens else { return };
        let used = used.tokens(rate, reserved);
        change_bucket(&mut self.tokens, model, |bucket| {
            if used <= reserved {
                bucket.give_back(spent, rate.cost(reserved - used), now);
            } else {
                bucket.spend(rate.cost(used - reserved), now);
            }
        });
    }

    /// A request that goes on has used `used` tokens so far: what is more than was reserved is charged now. What is in
    /// the way of more, if nothing is left then.
    pub(super) fn extend(
        &mut self,
        held: &mut Held,
        model: &ModelId,
        used: u64,
        now: Moment,
    ) -> Option<Limited> {
        let (rate, reserved, spent) = held.tokens.as_mut()?;
        let more = used.saturating_sub(*reserved);
        if more == 0 {
            return None;
        }
        let bucket = change_bucket(&mut self.tokens, model, |bucket| {
            *spent = bucket.spend(rate.cost(more), now);
            *bucket
        });
        *reserved = used;
        refusal(held.kind.scope(), Unit::Tokens, *rate, bucket, 1, now)
    }

    /// How many accounts these are.
    pub(super) fn count(&self) -> usize {
        1 + self.tokens.len()
    }

    /// Closes what is full, and says whether anything is left.
    pub(super) fn sweep(&mut self, now: Moment) -> bool {
        // Where something runs its reservation is to be settled with.
        let running = self.running > 0;
        self.tokens.retain(|_, bucket| running || !bucket.full_in(now).is_zero());
        running || !self.requests.full_in(now).is_zero() || !self.tokens.is_empty()
    }
}

/// Changes the bucket of `model`. Mostly there is one, and then no name is copied.
pub(super) fn change_bucket<R>(
    buckets: &mut HashMap<ModelId, Bucket, RandomState>,
    model: &ModelId,
    change: impl FnOnce(&mut Bucket) -> R,
) -> R {
    if let Some(bucket) = buckets.get_mut(model) {
        return change(bucket);
    }
    let mut bucket = Bucket::default();
    let changed = change(&mut bucket);
    buckets.insert(model.clone(), bucket);
    changed
}

pub(super) fn refusal(
    scope: Scope,
    unit: Unit,
    rate: Rate,
    bucket: Bucket,
    units: u64,
    now: Moment,
) -> Option<Limited> {
    if rate.units == 0 {
        return Some(Limited { scope, unit, limit: 0, rate: Some(rate), left: 0, retry_in: None });
    }
    let wait = bucket.wait(rate, units, now);
    (!wait.is_zero()).then(|| Limited {
        scope,
        unit,
        limit: rate.burst,
        rate: Some(rate),
        left: bucket.left(rate, now),
        retry_in: Some(wait),
    })
}

fn beside(scope: Scope, most: Option<u32>, running: u32) -> Option<Limited> {
    let limit = most?;
    let retry_in = (limit > 0).then_some(WHILE_OTHERS_RUN);
    (running >= limit).then_some(Limited {
        scope,
        unit: Unit::Concurrent,
        limit,
        rate: None,
        left: 0,
        retry_in,
    })
}

fn standing(rate: Rate, bucket: Bucket, now: Moment) -> (u32, u64, Duration) {
    (rate.burst, bucket.left(rate, now), bucket.full_in(now))
}
