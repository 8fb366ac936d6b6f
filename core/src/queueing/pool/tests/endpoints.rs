//! Which endpoint gets a request, and what it has to have answered before.

use super::*;

#[test]
fn route_12_an_endpoint_gets_requests_once_it_answered_itself() {
    let mut world = World::new(terms());
    let waiting = world.ask();
    world.list(&["a"]);
    assert!(world.granted(waiting).is_none(), "it is only listed");
    assert_eq!(world.probes(), 1);
    world.answer("a");
    assert!(world.granted(waiting).is_some());
}

#[test]
fn requests_go_to_each_endpoint_in_turn_and_wait_when_all_are_full() {
    let mut world = World::serving(terms(), &["a", "b", "c"]);
    let tickets: Vec<_> = (0..7).map(|_| world.ask()).collect();
    let ports: Vec<_> =
        tickets.iter().map(|ticket| world.granted(*ticket).map(|(_, port)| port)).collect();
    let (a, b, c) = (Some(1097), Some(1098), Some(1099));
    assert_eq!(ports, [a, b, c, a, b, c, None]);
    world.finish(world.granted(tickets[1]).expect("granted").0);
    assert_eq!(world.granted(tickets[6]).map(|(_, port)| port), b);
}

#[test]
fn queue_20_an_address_that_another_pod_got_is_asked_anew() {
    let mut world = World::serving(terms(), &["a"]);
    let successor = Listed { id: EndpointId("b".into()), ..listed("a") };
    world.act(|pool, now| pool.list(now, vec![successor.clone()]));
    let early = world.ask();
    assert!(world.granted(early).is_none());
    world.act(|pool, now| pool.answered(now, &successor.id, successor.address));
    assert!(world.granted(early).is_some());
}

#[test]
fn an_endpoint_that_took_no_connection_is_asked_before_it_gets_anything() {
    let mut world = World::unreachable(listed("a"));
    assert_eq!(world.probes(), 2, "at first, and once more");
    world.serves_once_it_answers();
}

#[test]
fn an_endpoint_that_took_no_connection_while_it_left_is_asked_if_it_stays() {
    let mut world = World::unreachable(Listed { leaving: true, ..listed("a") });
    assert_eq!(world.probes(), 1, "who leaves is not asked");
    world.list(&["a"]);
    assert_eq!(world.probes(), 2);
    world.serves_once_it_answers();
}

#[test]
fn an_endpoint_whose_readiness_falls_is_asked_and_one_moving_between_lists_is_not() {
    let mut world = World::serving(terms(), &["a"]);
    let before = world.probes();
    world.list(&["a"]);
    assert_eq!(world.probes(), before);
    let fallen = Listed { ready: false, ..listed("a") };
    world.act(|pool, now| pool.list(now, vec![fallen.clone()]));
    world.act(|pool, now| pool.list(now, vec![fallen]));
    assert_eq!(world.probes(), before + 1, "asked once");
}

#[test]
fn a_failure_does_not_close_an_endpoint_that_serves() {
    let mut world = World::serving(terms(), &["a"]);
    let failed = Standing::failed(Failure::new(Reason::CrashLoop, "the other one"));
    world.act(|pool, now| pool.stand(now, failed));
    let served = world.ask();
    assert!(world.granted(served).is_some());
}
