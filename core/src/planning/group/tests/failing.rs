//! Who cannot start keeps the GPU from nobody.

use super::*;

#[test]
fn who_cannot_start_makes_room_for_who_waits() {
    let broken = member("a", 100).loading(0).hindered(LoadHindrance::CrashLoop);
    let plan = decided(std::slice::from_ref(&broken), None, 10);
    assert_eq!(replicas(&plan), [1], "Kubernetes goes on trying while nobody else waits");
    let asked = member("b", 50).reports(0, 1, 10);
    let plan = decided(&[broken, asked], None, 10);
    assert_eq!(
        (replicas(&plan), standing(&plan, 0)),
        (vec![0, 0], &Standing::Barred { until: at(70) })
    );
    assert_eq!(plan.revisit, Some(at(70)));
}

#[test]
fn a_load_that_fails_and_that_nobody_waits_for_is_given_up_after_its_idle_timeout() {
    let broken = member("a", 100).loading(0).hindered(LoadHindrance::ImagePullFailed);
    let plan = decided(std::slice::from_ref(&broken), None, 10);
    assert_eq!(plan.revisit, Some(at(300)));
    assert_eq!(replicas(&decided(&[broken], None, 300)), [0]);
}

#[test]
fn a_member_that_no_node_takes_gives_way_after_a_while() {
    let nowhere = member("a", 100).loading(0).hindered(LoadHindrance::Unschedulable);
    let asked = member("b", 100).reports(0, 1, 10);
    assert_eq!(replicas(&decided(&[nowhere.clone(), asked.clone()], None, 10)), [1, 0]);
    assert_eq!(replicas(&decided(&[nowhere, asked.reports(0, 1, 40)], None, 40)), [0, 0]);
}

#[test]
fn without_weights_or_a_node_demand_starts_nothing() {
    let obstructed = Member { obstructed: true, ..member("a", 100).reports(0, 1, 0) };
    let other = member("b", 50).reports(0, 1, 1);
    let plan = decided(&[obstructed, other], None, 1);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![0, 1], &Standing::Obstructed));
}
