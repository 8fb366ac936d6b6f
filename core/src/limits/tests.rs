//! The accounts under every order of events: by hand for what the cases tell, at random for the rest.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::callers::{Allowed, Caller, Tenant};
use crate::ids::ModelId;
use crate::moment::Moment;

fn at(milliseconds: u64) -> Moment {
    Moment::after_origin(Duration::from_millis(milliseconds))
}

fn caller(name: &str, limits: CallerLimits) -> Caller {
    Caller { name: name.into(), tenant: None, models: Allowed::All, limits, expires: None }
}

fn of_tenant(tenant: &Arc<Tenant>, name: &str, limits: CallerLimits) -> Caller {
    Caller { tenant: Some(Arc::clone(tenant)), ..caller(name, limits) }
}

fn tenant(limits: CallerLimits) -> Arc<Tenant> {
    Arc::new(Tenant { name: "team".into(), limits })
}

fn model(name: &str) -> ModelId {
    ModelId::new("default", name)
}

fn need<'a>(model: &'a ModelId, caller: &'a Caller, tokens: u64) -> Need<'a> {
    Need { model, caller: Some(caller), tokens }
}

fn no_policy() -> Ledger {
    Ledger::new(Policy::default())
}

#[test]
fn rate_03_a_refused_request_spends_nothing() {
    let limits =
        CallerLimits { requests: Some(Rate::per_minute(1, 2)), concurrent: Some(1), tokens: None };
    let (model, caller) = (model("m"), caller("a", limits));
    let mut ledger = no_policy();
    let first = ledger.charge(&need(&model, &caller, 0), at(0)).expect("the first passes");
    let refused = ledger.charge(&need(&model, &caller, 0), at(1)).expect_err("one at a time");
    assert_eq!((refused.unit, refused.left), (Unit::Concurrent, 0));
    ledger.settle(first, Used::Reserved, at(2));
    let second = ledger.charge(&need(&model, &caller, 0), at(3)).expect("nothing was spent");
    ledger.settle(second, Used::Reserved, at(4));
    assert_eq!(
        ledger.charge(&need(&model, &caller, 0), at(5)).expect_err("both used").unit,
        Unit::Requests
    );
}

#[test]
fn rate_03_what_no_engine_saw_is_given_back() {
    let limits = CallerLimits {
        requests: Some(Rate::per_minute(1, 1)),
        concurrent: Some(1),
        tokens: Some(Rate::per_minute(100, 100)),
    };
    let (model, caller) = (model("m"), caller("a", limits));
    let one = Some(Rate::per_minute(1, 1));
    let mut ledger = Ledger::new(Policy { global: one, per_model: one });
    for _ in 0..3 {
        let charge = ledger.charge(&need(&model, &caller, 60), at(0)).expect("all is there");
        assert_eq!(charge.standing.requests.map(|(_, left, _)| left), Some(0));
        assert_eq!(charge.standing.tokens.map(|(_, left, _)| left), Some(40));
        ledger.give_back(charge, at(0));
    }
}

#[test]
fn the_limit_that_is_in_the_way_for_longest_is_told() {
    let mut ledger = Ledger::new(Policy {
        global: Some(Rate::per_second(1, 1)),
        per_model: Some(Rate::per_minute(1, 1)),
    });
    let model = model("m");
    let need = Need { model: &model, caller: None, tokens: 0 };
    let _spent = ledger.charge(&need, at(0)).expect("the first passes");
    let limited = ledger.check(&need, at(0)).expect_err("both are spent");
    assert_eq!((limited.scope, limited.retry_in), (Scope::PerModel, Some(Duration::from_secs(60))));
    let other = ModelId::new("default", "other");
    let need = Need { model: &other, ..need };
    assert_eq!(ledger.check(&need, at(0)).expect_err("for all").scope, Scope::Global);
    assert_eq!(ledger.check(&need, at(1000)), Ok(()));
}

#[test]
fn rate_08_a_limit_of_zero_never_passes() {
    let none = CallerLimits { concurrent: Some(0), ..CallerLimits::default() };
    let (model, caller) = (model("m"), caller("a", none));
    let limited = no_policy().check(&need(&model, &caller, 1), at(9)).expect_err("nothing");
    assert_eq!((limited.limit, limited.retry_in), (0, None));
}

#[test]
fn body_19_tokens_are_settled_by_what_was_used() {
    let tokens = Some(Rate::per_minute(100, 100));
    let (model, caller) =
        (model("m"), caller("a", CallerLimits { tokens, ..CallerLimits::default() }));
    let mut ledger = no_policy();
    // More than there can ever be is reserved as all there is.
    let first = ledger.charge(&need(&model, &caller, 300), at(0)).expect("the first passes");
    assert!(ledger.check(&need(&model, &caller, 1), at(0)).is_err(), "all is reserved");
    ledger.settle(first, Used::Tokens(80), at(0));
    assert!(ledger.check(&need(&model, &caller, 20), at(0)).is_ok());
    let second = ledger.charge(&need(&model, &caller, 20), at(0)).expect("the rest");
    ledger.settle(second, Used::Tokens(120), at(0));
    let owing = ledger.check(&need(&model, &caller, 1), at(0)).expect_err("it owes");
    assert!(owing.retry_in > Some(Duration::from_secs(60)), "{owing:?}");
    let other = ModelId::new("default", "other");
    assert!(ledger.check(&need(&other, &caller, 100), at(0)).is_ok(), "each model for itself");
}

#[test]
fn the_callers_of_a_tenant_share_its_limits() {
    let limits = CallerLimits {
        requests: Some(Rate::per_minute(60, 3)),
        concurrent: Some(2),
        tokens: Some(Rate::per_minute(100, 100)),
    };
    let team = tenant(limits);
    let free = CallerLimits::default();
    let [a, b] = ["a", "b"].map(|name| of_tenant(&team, name, free));
    let (model, mut ledger) = (model("m"), no_policy());
    let first = ledger.charge(&need(&model, &a, 60), at(0)).expect("the first passes");
    assert_eq!(first.standing.tokens.map(|(_, left, _)| left), Some(40), "the tenant's are told");
    let limited = ledger.check(&need(&model, &b, 60), at(0)).expect_err("40 are left");
    assert_eq!((limited.scope, limited.unit), (Scope::PerTenant, Unit::Tokens));
    let second = ledger.charge(&need(&model, &b, 40), at(0)).expect("these are left");
    let limited = ledger.check(&need(&model, &a, 0), at(0)).expect_err("two at a time");
    assert_eq!((limited.scope, limited.unit), (Scope::PerTenant, Unit::Concurrent));
    ledger.settle(first, Used::Tokens(10), at(0));
    ledger.give_back(second, at(0));
    let third = ledger.charge(&need(&model, &b, 90), at(0)).expect("90 tokens are there again");
    assert_eq!(third.standing.requests.map(|(_, left, _)| left), Some(1), "and two requests were");
    assert!(ledger.check(&need(&model, &caller("c", free), 1000), at(0)).is_ok(), "no tenant");
    ledger.settle(third, Used::Reserved, at(0));
}

#[test]
fn a_caller_is_held_by_its_own_limits_too_and_told_of_the_nearer_one() {
    let with = |tokens| CallerLimits {
        tokens: Some(Rate::per_minute(tokens, tokens)),
        ..CallerLimits::default()
    };
    let caller = of_tenant(&tenant(with(1000)), "a", with(100));
    let (model, mut ledger) = (model("m"), no_policy());
    let charge = ledger.charge(&need(&model, &caller, 60), at(0)).expect("passes");
    assert_eq!(charge.standing.tokens.map(|(limit, left, _)| (limit, left)), Some((100, 40)));
    let limited = ledger.check(&need(&model, &caller, 60), at(0)).expect_err("40 are left");
    assert_eq!(limited.scope, Scope::PerCaller);
    ledger.give_back(charge, at(0));
}

#[test]
fn rate_05_accounts_at_rest_are_closed_and_others_kept() {
    let limits =
        CallerLimits { requests: Some(Rate::per_second(10, 1)), ..CallerLimits::default() };
    let mut ledger = Ledger::new(Policy { global: None, per_model: Some(Rate::per_second(10, 1)) });
    let slow = CallerLimits { requests: Some(Rate::per_minute(1, 1)), ..limits };
    let (kept, m) = (caller("kept", slow), model("m"));
    let charge = ledger.charge(&need(&m, &kept, 0), at(0)).expect("passes");
    ledger.settle(charge, Used::Reserved, at(0));
    for number in 0..10_000_u64 {
        let (model, caller) = (model(&format!("m{number}")), caller(&format!("c{number}"), limits));
        let charge = ledger.charge(&need(&model, &caller, 0), at(number)).expect("passes");
        ledger.settle(charge, Used::Reserved, at(number));
        assert!(ledger.accounts() < 1000, "{} accounts", ledger.accounts());
    }
    assert!(ledger.check(&need(&m, &kept, 0), at(10_000)).is_err(), "it was forgotten");
}

#[derive(Clone, Debug)]
enum Event {
    Ask { model: usize, caller: usize, tokens: u64 },
    End { which: usize, used: Option<u64> },
    GiveBack { which: usize },
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..2_usize, 0..2_usize, 0..60_u64)
            .prop_map(|(model, caller, tokens)| Event::Ask { model, caller, tokens }),
        2 => (0..8_usize, proptest::option::of(0..60_u64)).prop_map(|(which, used)| Event::End { which, used }),
        1 => (0..8_usize).prop_map(|which| Event::GiveBack { which }),
        2 => (0..4000_u64).prop_map(Event::Pass),
    ]
}

/// What was let through, and what of it is still going on.
#[derive(Default)]
struct Seen {
    running: Vec<(usize, usize, u64, Charge)>,
    passed: Vec<(usize, usize)>,
    tokens: Vec<(usize, usize, u64)>,
}

impl Seen {
    fn end(&mut self, ledger: &mut Ledger, which: usize, used: Option<u64>, now: Moment) {
        if which < self.running.len() {
            let (model, caller, reserved, charge) = self.running.swap_remove(which);
            ledger.settle(charge, used.map_or(Used::Reserved, Used::Tokens), now);
            self.passed.push((model, caller));
            self.tokens.push((model, caller, used.unwrap_or(reserved)));
        }
    }
}

proptest! {
    #[test]
    fn never_more_than_the_limits_and_everything_settled_in_the_end(
        events in prop::collection::vec(event(), 1..120),
    ) {
        let (global, per_model) = (Rate::per_second(4, 6), Rate::per_second(2, 4));
        let (requests, tokens) = (Rate::per_second(1, 3), Rate::per_minute(600, 100));
        let limits = CallerLimits { requests: Some(requests), concurrent: Some(2), tokens: Some(tokens) };
        let (of_team, team_tokens) = (Rate::per_second(1, 4), Rate::per_minute(600, 120));
        let shared = CallerLimits { requests: Some(of_team), concurrent: Some(3), tokens: Some(team_tokens) };
        let team = tenant(shared);
        let callers = ["a", "b"].map(|name| of_tenant(&team, name, limits));
        let models = [model("x"), model("y")];
        let mut ledger = Ledger::new(Policy { global: Some(global), per_model: Some(per_model) });
        let (mut seen, mut milliseconds) = (Seen::default(), 0);
        for event in events {
            let now = at(milliseconds);
            match event {
                Event::Pass(time) => milliseconds += time,
                Event::Ask { model, caller, tokens: wanted } => {
                    let need = need(&models[model], &callers[caller], wanted);
                    let possible = ledger.check(&need, now);
                    match ledger.charge(&need, now) {
                        Ok(charge) => seen.running.push((model, caller, wanted, charge)),
                        Err(limited) => prop_assert_eq!(possible, Err(limited)),
                    }
                }
                Event::End { which, used } => seen.end(&mut ledger, which, used, now),
                Event::GiveBack { which } if which < seen.running.len() => {
                    ledger.give_back(seen.running.swap_remove(which).3, now);
                }
                Event::GiveBack { .. } => {}
            }
            // 1. Never more at once than may be.
            for number in 0..2 {
                let running = seen.running.iter().filter(|(_, caller, ..)| *caller == number).count();
                prop_assert!(running <= 2);
            }
            prop_assert!(seen.running.len() <= 3, "of one tenant");
            // 2. Never more over time than came back in it.
            let most = |rate: Rate| u64::from(rate.burst) + milliseconds * u64::from(rate.units) / u64::try_from(rate.period.as_millis()).unwrap();
            let all = seen.passed.len() + seen.running.len();
            prop_assert!(all as u64 <= most(global));
            prop_assert!(all as u64 <= most(of_team));
            let took = |of_model: Option<usize>, of_caller: Option<usize>| {
                let fits = |model: usize, caller: usize| of_model.is_none_or(|of| of == model) && of_caller.is_none_or(|of| of == caller);
                let passed = seen.passed.iter().filter(|(model, caller)| fits(*model, *caller)).count();
                (passed + seen.running.iter().filter(|(model, caller, ..)| fits(*model, *caller)).count()) as u64
            };
            for number in 0..2 {
                prop_assert!(took(Some(number), None) <= most(per_model));
                prop_assert!(took(None, Some(number)) <= most(requests));
            }
            // 3. What is reserved and what was used stay within the tokens, but for what an answer took
            //    beyond its reservation: that is owed, so it is not let through again.
            for (model, caller) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let reserved: u64 = seen.running.iter().filter(|(m, c, ..)| (*m, *c) == (model, caller)).map(|(_, _, tokens, _)| tokens).sum();
                let used: u64 = seen.tokens.iter().filter(|(m, c, _)| (*m, *c) == (model, caller)).map(|(.., tokens)| tokens).sum();
                prop_assert!(reserved + used <= most(tokens) + 60 * 2, "{} and {}", reserved, used);
            }
            for model in 0..2 {
                let reserved: u64 = seen.running.iter().filter(|(m, ..)| *m == model).map(|(_, _, tokens, _)| tokens).sum();
                let used: u64 = seen.tokens.iter().filter(|(m, ..)| *m == model).map(|(.., tokens)| tokens).sum();
                prop_assert!(reserved + used <= most(team_tokens) + 60 * 3, "{} and {} of the tenant", reserved, used);
            }
        }
        // In the end all is settled, and after a while all is there again.
        let now = at(milliseconds);
        while !seen.running.is_empty() {
            seen.end(&mut ledger, 0, None, now);
        }
        let later = now + Duration::from_secs(3600);
        let charge = ledger.charge(&need(&models[0], &callers[0], 1), later).unwrap();
        prop_assert_eq!(charge.standing.requests.map(|(_, left, _)| left), Some(2));
        prop_assert_eq!(charge.standing.tokens.map(|(_, left, _)| left), Some(99));
        ledger.give_back(charge, later);
    }
}
