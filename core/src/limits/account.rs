//! The accounts of one who has limits, a caller or a tenant: looked at, charged, given back and settled
//! alike.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::ledger::{Limited, Need, Scope, Standing, Unit};
use super::rate::{Bucket, Spent};
use super::{CallerLimits, Rate};
use crate::ids::ModelId;
use crate::moment::Moment;

/// What a request waits that comes beside as many as may be: nobody knows when one of them ends.
const WHILE_OTHERS_RUN: Duration = Duration::from_secs(1);

/// Whose account it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Caller(Arc<str>),
    Tenant(Arc<str>),
}

impl Holder {
    const fn scope(&self) -> Scope {
        match self {
            Self::Caller(_) => Scope::PerCaller,
            Self::Tenant(_) => Scope::PerTenant,
        }
    }
}

/// Everybody with limits whose accounts `need` touches: the caller, then its tenant.
pub(super) fn holders(need: &Need<'_>) -> [Option<(Holder, CallerLimits)>; 2] {
    let Some(caller) = need.caller else { return [None, None] };
    let own = (Holder::Caller(Arc::clone(&caller.name)), caller.limits);
    let shared = caller
        .tenant
        .as_ref()
        .map(|tenant| (Holder::Tenant(Arc::clone(&tenant.name)), tenant.limits));
    [Some(own), shared].map(|holder| holder.filter(|(_, limits)| limits.any()))
}

/// What a holder was charged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) holder: Holder,
    requests: Option<Spent>,
    /// The tokens reserved, with the rate that they were reserved by.
    tokens: Option<(Rate, u64, Spent)>,
}

/// One holder's accounts.
#[derive(Debug, Default)]
pub(super) struct Account {
    requests: Bucket,
    running: u32,
    tokens: HashMap<ModelId, Bucket>,
}

impl Account {
    /// What of `limits` is in the way of `need`.
    pub(super) fn refusals(
        account: Option<&Self>,
        holder: &Holder,
        limits: &CallerLimits,
        need: &Need<'_>,
        now: Moment,
    ) -> [Option<Limited>; 3] {
        let scope = holder.scope();
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
        holder: Holder,
        limits: &CallerLimits,
        need: &Need<'_>,
        now: Moment,
    ) -> (Held, Standing) {
        self.running += 1;
        let mut held = Held { holder, requests: None, tokens: None };
        let mut now_stands = Standing::default();
        if let Some(rate) = limits.requests {
            held.requests = Some(self.requests.spend(rate.cost(1), now));
            now_stands.requests = Some(standing(rate, self.requests, now));
        }
        if let Some(rate) = limits.tokens {
            let bucket = self.tokens.entry(need.model.clone()).or_default();
            // What can never be there at once is charged as all there is; settling sees to the rest.
            let reserved = need.tokens.min(u64::from(rate.burst));
            held.tokens = Some((rate, reserved, bucket.spend(rate.cost(reserved), now)));
            now_stands.tokens = Some(standing(rate, *bucket, now));
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

    /// `used` tokens, and not the reserved ones, are charged.
    pub(super) fn settle(&mut self, held: &Held, model: &ModelId, used: Option<u64>, now: Moment) {
        self.running = self.running.saturating_sub(1);
        let Some((rate, reserved, spent)) = held.tokens else { return };
        let used = used.unwrap_or(reserved);
        let bucket = self.tokens.entry(model.clone()).or_default();
        if used <= reserved {
            bucket.give_back(spent, rate.cost(reserved - used), now);
        } else {
            bucket.spend(rate.cost(used - reserved), now);
        }
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

pub(super) fn refusal(
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

fn beside(scope: Scope, most: Option<u32>, running: u32) -> Option<Limited> {
    let limit = most?;
    let retry_in = (limit > 0).then_some(WHILE_OTHERS_RUN);
    (running >= limit).then_some(Limited {
        scope,
        unit: Unit::Concurrent,
        limit,
        left: 0,
        retry_in,
    })
}

fn standing(rate: Rate, bucket: Bucket, now: Moment) -> (u32, u64, Duration) {
    (rate.burst, bucket.left(rate, now), bucket.full_in(now))
}
