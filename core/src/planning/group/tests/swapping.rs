//! How the GPU goes from one to another.

use super::*;

#[test]
fn a_higher_demand_drains_a_busy_leader_and_waits_for_its_pods() {
    let busy = member("low", 100).ready(20).reports(3, 0, 40);
    let asked = member("high", 200).reports(0, 1, 50);
    let plan = decided(&[busy.clone(), asked.clone()], None, 60);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1, 0], &Standing::Draining));
    let behind = Behind::Leaving(id("low"));
    assert_eq!(standing(&plan, 1), &Standing::Waiting { position: 1, behind });
    let swap = Preempted { by: id("high"), at: at(60) };
    assert_eq!(plan.verdicts[0].record.preempted, Some(swap.clone()));

    let record = plan.verdicts[0].record.clone();
    let done = Member { record, ..busy }.promised(0, 0, 65);
    let plan = decided(&[done.clone(), asked.clone()], None, 65);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![0, 0], &Standing::Preempted(swap)));

    let plan = decided(&[done.clone().ending(), asked.clone()], None, 66);
    assert_eq!(replicas(&plan), [0, 0], "the old pods are still there");

    let coming = plan.verdicts[1].record.coming;
    let asked = Member { record: Record { coming, ..Record::default() }, ..asked };
    let gone = Member { engine: Engine::default(), ..done };
    let plan = decided(&[gone, asked], None, 70);
    assert_eq!((replicas(&plan), standing(&plan, 1)), (vec![0, 1], &Standing::Holding));
    let (drained, started) = (Some(at(66)), Some(at(70)));
    let coming = Coming { decided: at(66), drained, started };
    assert_eq!(plan.verdicts[1].record.coming, Some(coming), "each part of the swap is timed");
}

#[test]
fn a_drain_ends_at_its_limit() {
    let mut busy = member("low", 100).ready(20).reports(3, 0, 100);
    busy.record.draining = Some(at(60));
    let asked = member("high", 200).reports(0, 1, 100);
    let limit = busy.model.drain_limit.as_secs();
    let plan = decided(&[busy.clone(), asked.clone()], None, 60 + limit - 1);
    assert_eq!(replicas(&plan), [1, 0]);
    assert!(plan.revisit.is_some_and(|at_| at_ <= at(60 + limit)), "{:?}", plan.revisit);
    assert_eq!(replicas(&decided(&[busy, asked], None, 60 + limit)), [0, 0]);
}

#[test]
fn the_winner_of_a_swap_is_known_by_those_who_left() {
    let mut left = member("a", 100);
    left.record.preempted = Some(Preempted { by: id("b"), at: at(50) });
    let left = left.reports(0, 1, 100);
    let winner = member("b", 100).ready(70).reports(1, 0, 100);
    let plan = decided(&[left, winner], None, 110);
    assert_eq!(replicas(&plan), [0, 1], "it has work and is protected for the cooldown");
    assert!(matches!(standing(&plan, 0), Standing::Waiting { behind: Behind::Turn(_), .. }));
}

#[test]
fn who_was_preempted_is_so_until_the_winner_is_gone() {
    let mut left = member("a", 100);
    let swap = Preempted { by: id("b"), at: at(50) };
    left.record.preempted = Some(swap.clone());
    let winner = member("b", 100).ready(70).reports(1, 0, 100);
    let plan = decided(&[left.clone(), winner], None, 110);
    assert_eq!(standing(&plan, 0), &Standing::Preempted(swap));
    let plan = decided(&[left, member("b", 100)], None, 110);
    assert_eq!(standing(&plan, 0), &Standing::Asleep);
}

#[test]
fn an_equal_lets_the_busy_finish_and_is_told_so() {
    let busy = member("a", 100).ready(20).reports(1, 0, 100);
    let asked = member("b", 100).reports(0, 1, 100);
    let plan = decided(&[busy, asked], None, 105);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1, 0], &Standing::Yielding));
}

#[test]
fn a_pinned_leader_of_higher_priority_holds_the_gpu() {
    let mut leader = member("high", 200).ready(20);
    leader.model.min_replicas = 1;
    let asked = member("low", 100).reports(0, 1, 900);
    let plan = decided(&[leader, asked], None, 900);
    let behind = Behind::Turn(Turn::HeldBy(id("high")));
    assert_eq!(standing(&plan, 1), &Standing::Waiting { position: 1, behind });
}

#[test]
fn a_leased_gpu_has_no_leader() {
    let mut idle = member("a", 100).ready(20);
    idle.record.draining = Some(at(99));
    let asked = member("b", 100).reports(0, 1, 100);
    let plan = decided(&[idle, asked.clone()], Some(at(500)), 100);
    assert_eq!(replicas(&plan), [0, 0]);
    let behind = Behind::Lease(at(500));
    assert_eq!(standing(&plan, 1), &Standing::Waiting { position: 1, behind });
    let plan = decided(&[member("a", 100), asked], Some(at(100)), 100);
    assert_eq!(replicas(&plan), [0, 1], "the lease is over");
}
