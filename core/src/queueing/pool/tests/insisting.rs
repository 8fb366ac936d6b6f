//! Requests for what one endpoint alone has: nobody else is asked, and nobody is woken for them.

use super::*;

fn fallen(name: &str) -> Listed {
    Listed { ready: false, ..listed(name) }
}

fn leaving(name: &str) -> Listed {
    Listed { leaving: true, ..listed(name) }
}

/// Nothing of it was asked of the controller.
fn assert_calls_nobody(world: &World) {
    assert!(world.reports().iter().all(|[_, waiting, _]| *waiting == 0), "{:?}", world.reports());
    let told = |effect: &PoolEffect| matches!(effect, PoolEffect::Tell { .. });
    assert!(!world.effects.iter().any(told), "nobody wakes");
}

#[test]
fn a_holder_that_does_not_answer_for_a_moment_is_waited_for() {
    let mut world = World::serving(terms(), &["a", "b"]);
    world.act(|pool, now| pool.list(now, vec![fallen("a"), listed("b")]));
    let picture = world.insist("a");
    assert_eq!((world.granted(picture), world.code(picture)), (None, None));
    let other = world.ask();
    assert_eq!(world.granted(other).map(|(_, port)| port), Some(1098), "nobody waits behind it");
    world.answer("a");
    assert_eq!(world.granted(picture).map(|(_, port)| port), Some(1097));
}

#[test]
fn a_holder_is_waited_for_no_longer_than_for_a_slot_where_nobody_else_answers() {
    let policy = Policy::default();
    let mut world = World::serving(
        Terms { cold_start_timeout: Some(policy.queue_timeout * 9), ..terms() },
        &["a"],
    );
    world.act(|pool, now| pool.list(now, vec![fallen("a")]));
    let picture = world.insist("a");
    world.pass(policy.queue_timeout);
    assert_eq!(world.code(picture), Some("queue_timeout"));
    assert_calls_nobody(&world);
}

#[test]
fn who_waits_for_the_slots_of_a_holder_is_no_demand_for_another_engine() {
    let mut world = World::serving(Terms { slots: Some(1), ..terms() }, &["a"]);
    let first = world.ask();
    world.arrived();
    let pictures = [world.insist("a"), world.insist("a")];
    world.pass(secs(5));
    world.arrived();
    assert!(world.reports().iter().all(|[_, waiting, _]| *waiting == 0), "{:?}", world.reports());
    assert_eq!(world.pool.view().waiting, 2);
    world.finish(world.granted(first).expect("granted").0);
    assert!(world.granted(pictures[0]).is_some() && world.granted(pictures[1]).is_none());
    world.ask();
    world.pass(secs(5));
    assert_eq!(world.reports().last().map(|report| report[1]), Some(1), "another one is");
}

#[test]
fn what_is_gone_with_its_holder_is_told_at_once_and_wakes_nobody() {
    for (name, left) in [
        ("leaving", vec![leaving("a")]),
        ("leaving beside another", vec![leaving("a"), listed("b")]),
        ("gone", vec![]),
        ("gone, with another", vec![listed("b")]),
        ("gone, with another that does not answer", vec![fallen("b")]),
    ] {
        let mut world = World::serving(Terms { slots: Some(1), ..terms() }, &["a", "b"]);
        let busy = [world.ask(), world.ask()].map(|ticket| world.granted(ticket).expect("free").0);
        let waiting = world.insist("a");
        assert_eq!(world.code(waiting), None, "{name}");
        world.act(|pool, now| pool.list(now, left.clone()));
        assert_eq!(world.code(waiting), Some("maker_gone"), "{name}: it waits on");
        let late = world.insist("a");
        assert_eq!(world.code(late), Some("maker_gone"), "{name}: it waits");
        for booking in busy {
            world.finish(booking);
        }
        let free = world.insist("a");
        assert_eq!(
            world.code(free),
            Some("maker_gone"),
            "{name}: another with a free slot is asked"
        );
        world.arrived();
        world.pass(secs(100));
        assert_calls_nobody(&world);
        assert_eq!(world.pool.view().in_flight, 0, "{name}: nobody else is asked");
    }
}

#[test]
fn who_waited_for_a_holder_that_does_not_answer_is_told_when_that_is_gone_or_stopped() {
    let stopped = Standing { away: true, ..standing(Phase::Pending) };
    let gone = |world: &mut World| world.list(&[]);
    let stops = |world: &mut World| world.act(|pool, now| pool.stand(now, stopped.clone()));
    for ends in [&gone as &dyn Fn(&mut World), &stops] {
        let mut world = World::serving(terms(), &["a"]);
        world.act(|pool, now| pool.list(now, vec![fallen("a")]));
        let picture = world.insist("a");
        assert_eq!(world.code(picture), None);
        ends(&mut world);
        assert_eq!(world.code(picture), Some("maker_gone"));
        assert_eq!(world.pool.wake_at(world.now), None);
        assert_calls_nobody(&world);
    }
}

#[test]
fn a_cold_model_is_not_woken_for_what_only_an_engine_had_that_is_gone() {
    let mut world = World::new(Terms { max_queue: Some(0), ..terms() });
    let picture = world.insist("a");
    assert_eq!(world.code(picture), Some("maker_gone"));
    assert_calls_nobody(&world);
    let waking = world.ask();
    assert_eq!((world.code(waking), world.reports().len()), (Some("queue_full"), 1));
}

#[test]
fn who_is_turned_away_behind_those_who_insist_wakes_the_model_all_the_same() {
    let mut world = World::serving(Terms { max_queue: Some(1), ..terms() }, &["a"]);
    world.act(|pool, now| pool.list(now, vec![fallen("a")]));
    let picture = world.insist("a");
    assert_eq!(world.code(picture), None);
    let other = world.ask();
    assert_eq!(world.code(other), Some("queue_full"));
    world.arrived();
    world.pass(secs(5));
    assert_eq!(world.reports().last().map(|report| report[1]), Some(1), "nobody asks for it");
}
