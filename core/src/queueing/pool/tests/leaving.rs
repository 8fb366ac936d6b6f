//! Engines that leave, one or all of a model's: nothing new, and what they have is finished.

use super::*;

#[test]
fn queue_09_an_endpoint_that_leaves_takes_nothing_new_and_finishes_what_it_has() {
    let mut world = World::serving(terms(), &["a", "b"]);
    let first = world.ask();
    let leaving = Listed { leaving: true, ..listed("a") };
    world.act(|pool, now| pool.list(now, vec![leaving, listed("b")]));
    let (next, after) = (world.ask(), world.ask());
    assert_eq!(world.granted(next).map(|(_, port)| port), Some(1098));
    assert_eq!(world.granted(after).map(|(_, port)| port), Some(1098));
    assert_eq!(world.pool.view().in_flight, 3);
    world.list(&["b"]);
    assert_eq!(world.pool.view().in_flight, 3, "what is on it is not forgotten");
    world.finish(world.granted(first).expect("granted").0);
    assert_eq!(world.pool.view().in_flight, 2);
}

#[test]
fn queue_18_an_engine_that_was_stopped_gets_nothing_while_it_is_listed_still() {
    let mut world = World::serving(terms(), &["a"]);
    let draining = Standing { draining: true, ..standing(Phase::Ready) };
    world.act(|pool, now| pool.stand(now, draining));
    let waiting = world.ask();
    let queued = Standing { away: true, ..standing(Phase::Pending) };
    world.act(|pool, now| pool.stand(now, queued));
    world.list(&["a"]);
    world.answer("a");
    assert!(world.granted(waiting).is_none(), "it is being stopped");
    // Its successor serves as soon as it answers, whenever its controller is heard.
    world.list(&["a", "b"]);
    world.answer("b");
    let (_, port) = world.granted(waiting).expect("granted");
    assert_eq!(port, listed("b").address.port());
    // Should it be there in truth, it is asked.
    let before = world.probes();
    world.act(|pool, now| pool.stand(now, standing(Phase::Loading)));
    assert_eq!(world.probes(), before + 1);
}

#[test]
fn a_draining_model_keeps_new_requests_in_its_queue() {
    let mut world = World::serving(terms(), &["a"]);
    let draining = Standing { draining: true, ..standing(Phase::Ready) };
    world.act(|pool, now| pool.stand(now, draining));
    let waiting = world.ask();
    assert!(world.granted(waiting).is_none());
    world.act(|pool, now| pool.stand(now, standing(Phase::Ready)));
    assert!(world.granted(waiting).is_some());
}

#[test]
fn queue_18_each_time_a_model_leaves_its_engines_are_promised_nothing_more() {
    let mut world = World::serving(terms(), &["a"]);
    let served = world.ask();
    assert!(world.granted(served).is_some());
    world.arrived();
    for time in 1..=2 {
        world.pass(secs(1));
        assert_eq!(world.promises(), time - 1);
        world.act(|pool, now| {
            pool.stand(now, Standing { draining: true, ..standing(Phase::Ready) })
        });
        world.pass(secs(1));
        assert_eq!(world.promises(), time, "although nothing else has changed");
        world.arrived();
        world.act(|pool, now| pool.stand(now, standing(Phase::Ready)));
    }
}
