//! Groups on a cluster as tables: what is seen, and what shall be.

use flexinfer_crds::Model;
use flexinfer_crds::conditions::LoadHindrance;
use flexinfer_crds::model::{Gpu, ModelStatus, Serverless, Traffic};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use proptest::prelude::*;

use super::*;
use crate::effective::Defaults;
use crate::planning::model::Hindrance;
use crate::sharing::Turn;

fn at(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
}

fn id(name: &str) -> ModelId {
    ModelId::new("default", name)
}

/// A member with everything that a [`Candidate`] borrows.
#[derive(Clone, Debug)]
struct Member {
    model: Effective,
    engine: Engine,
    demand: Demand,
    obstructed: bool,
    deleted: bool,
    evicted: bool,
    record: Record,
}

fn member(name: &str, priority: i32) -> Member {
    let mut model = Model::new(name, flexinfer_crds::ModelSpec::default());
    model.spec.backend = "simulator".into();
    model.spec.gpu =
        Some(Gpu { shared: Some("gpu0".into()), priority: Some(priority), ..Gpu::default() });
    model.spec.serverless =
        Some(Serverless { idle_timeout: Some("300s".parse().unwrap()), ..Serverless::default() });
    Member {
        model: Effective::of(&model, 1, &Defaults::default()).unwrap(),
        engine: Engine::default(),
        demand: Demand::default(),
        obstructed: false,
        deleted: false,
        evicted: false,
        record: Record::default(),
    }
}

impl Member {
    /// Reported by one gateway at `second`.
    fn reports(self, in_flight: i32, waiting: i32, second: u64) -> Self {
        self.told((in_flight, waiting), false, second)
    }

    /// The same by one that has read that the model leaves.
    fn promised(self, in_flight: i32, waiting: i32, second: u64) -> Self {
        self.told((in_flight, waiting), true, second)
    }

    fn told(mut self, (in_flight, waiting): (i32, i32), draining: bool, second: u64) -> Self {
        let renewed = Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
        let traffic = vec![Traffic {
            gateway: "a".into(),
            in_flight,
            waiting,
            peak: in_flight + waiting,
            draining,
            renew_time: MicroTime(renewed),
        }];
        self.demand.look(Some(&ModelStatus { traffic, ..ModelStatus::default() }), at(second));
        self
    }

    fn loading(mut self, made: u64) -> Self {
        let made = Some(at(made));
        self.engine = Engine { asked: 1, present: true, made, ..Engine::default() };
        self
    }

    fn ready(mut self, since: u64) -> Self {
        self.engine = Engine {
            asked: 1,
            ready: 1,
            present: true,
            ready_since: Some(at(since)),
            made: Some(at(since - 10)),
            ..Engine::default()
        };
        self
    }

    fn ending(mut self) -> Self {
        self.engine = Engine { present: true, ..Engine::default() };
        self
    }

    fn hindered(mut self, reason: LoadHindrance) -> Self {
        self.engine.hindrance = Some(Hindrance { reason, message: "so it is".into() });
        self
    }
}

fn decided(members: &[Member], lease: Option<Moment>, now: u64) -> Plan {
    let candidates: Vec<Candidate<'_>> = members
        .iter()
        .map(|member| Candidate {
            model: &member.model,
            engine: member.engine.clone(),
            demand: &member.demand,
            obstructed: member.obstructed,
            deleted: member.deleted,
            evicted: member.evicted,
            last_load: None,
            record: member.record.clone(),
        })
        .collect();
    decide(&candidates, lease, at(now))
}

/// How many replicas each shall have.
fn replicas(plan: &Plan) -> Vec<u32> {
    plan.verdicts.iter().map(|verdict| verdict.replicas).collect()
}

fn standing(plan: &Plan, member: usize) -> &Standing {
    &plan.verdicts[member].standing
}

#[test]
fn a_model_that_nobody_asks_for_sleeps() {
    let plan = decided(&[member("a", 100)], None, 0);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![0], &Standing::Asleep));
    assert_eq!(plan.revisit, None, "nothing will happen by itself");
}

#[test]
fn demand_starts_a_model() {
    let plan = decided(&[member("a", 100).reports(0, 1, 0)], None, 0);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1], &Standing::Holding));
}

#[test]
fn a_model_that_loads_is_kept_although_nobody_waits_any_more() {
    let plan = decided(&[member("a", 100).loading(0)], None, 500);
    assert_eq!(replicas(&plan), [1]);
}

#[test]
fn an_idle_model_is_told_to_gateways_before_it_goes() {
    let unknown = member("a", 100).ready(20);
    let plan = decided(std::slice::from_ref(&unknown), None, 321);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![0], &Standing::Leaving));

    let idle = member("a", 100).ready(20).reports(0, 0, 100);
    let plan = decided(std::slice::from_ref(&idle), None, 321);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1], &Standing::Draining));
    let draining = Member { record: plan.verdicts[0].record.clone(), ..idle };

    let heard = draining.clone().promised(0, 0, 322);
    assert_eq!(replicas(&decided(&[heard], None, 323)), [0]);
    let came = draining.clone().reports(0, 1, 322);
    let plan = decided(&[came], None, 323);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1], &Standing::Holding));
    let silent = decided(&[draining], None, 331);
    assert_eq!(replicas(&silent), [0], "what a silent gateway said last counts after a while");
}

#[test]
fn queue_18_a_report_that_may_have_crossed_the_word_to_leave_ends_no_engine() {
    let mut leaving = member("a", 100).ready(20).reports(0, 0, 100);
    leaving.record.draining = Some(at(321));
    let crossing = leaving.reports(0, 0, 322);
    let plan = decided(std::slice::from_ref(&crossing), None, 323);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1], &Standing::Draining));
    let took_one = crossing.clone().promised(1, 0, 323);
    assert_eq!(replicas(&decided(&[took_one], None, 330)), [1]);
    assert_eq!(replicas(&decided(&[crossing.promised(0, 0, 323)], None, 323)), [0]);
}

#[test]
fn a_pinned_model_is_up_without_anybody_asking() {
    let mut pinned = member("a", 100);
    pinned.model.min_replicas = 1;
    assert_eq!(replicas(&decided(&[pinned], None, 0)), [1]);
}

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

#[test]
fn a_leased_gpu_has_no_leader() {
    let idle = member("a", 100).ready(20);
    let asked = member("b", 100).reports(0, 1, 100);
    let plan = decided(&[idle, asked.clone()], Some(at(500)), 100);
    assert_eq!(replicas(&plan), [0, 0]);
    let behind = Behind::Lease(at(500));
    assert_eq!(standing(&plan, 1), &Standing::Waiting { position: 1, behind });
    let plan = decided(&[member("a", 100), asked], Some(at(100)), 100);
    assert_eq!(replicas(&plan), [0, 1], "the lease is over");
}

#[test]
fn a_deleted_model_holds_the_gpu_until_its_pods_are_gone() {
    let deleted = Member { deleted: true, ..member("a", 200).ready(20) };
    let asked = member("b", 100).reports(0, 1, 100);
    let plan = decided(&[deleted.clone(), asked.clone()], None, 100);
    assert_eq!(replicas(&plan), [0, 0]);
    assert_eq!(standing(&plan, 0), &Standing::Leaving);
    let gone = Member { engine: Engine::default(), ..deleted };
    let plan = decided(&[gone, asked], None, 101);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![0, 1], &Standing::Gone));
}

#[test]
fn an_evicted_model_finishes_what_it_serves_and_may_then_come_back() {
    let full = Member { evicted: true, ..member("a", 200).ready(20).reports(1, 3, 100) };
    let plan = decided(std::slice::from_ref(&full), None, 100);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1], &Standing::Draining));
    let done = Member { record: plan.verdicts[0].record.clone(), ..full.promised(0, 3, 101) };
    let plan = decided(std::slice::from_ref(&done), None, 102);
    assert_eq!(replicas(&plan), [0]);
    let asleep = Member { evicted: false, engine: Engine::default(), ..done };
    assert_eq!(replicas(&decided(&[asleep], None, 103)), [1], "with an empty cache");
}

#[test]
fn more_load_brings_more_replicas_at_once_and_less_takes_them_later() {
    let mut model = member("a", 100).ready(20).reports(7, 2, 100);
    (model.model.slots, model.model.max_replicas) = (Some(4), 5);
    assert_eq!(replicas(&decided(std::slice::from_ref(&model), None, 100)), [3]);
    model.engine.asked = 3;
    let quiet = model.reports(1, 0, 110);
    let plan = decided(std::slice::from_ref(&quiet), None, 110);
    assert_eq!(replicas(&plan), [3]);
    assert_eq!(plan.revisit, Some(at(170)));
    let quiet = Member { record: plan.verdicts[0].record.clone(), ..quiet };
    assert_eq!(replicas(&decided(&[quiet.reports(1, 0, 160)], None, 170)), [1]);
}

fn any_member() -> impl Strategy<Value = (i32, u8, i32, i32, bool, bool)> {
    (0..3_i32, 0..4_u8, 0..3_i32, 0..3_i32, any::<bool>(), any::<bool>())
}

proptest! {
    /// Whatever is seen, no model is started beside what is left of another, at most one is
    /// started, and deciding again on the same sight changes nothing.
    #[test]
    fn a_newcomer_starts_alone(
        seen in proptest::collection::vec(any_member(), 1..6),
        now in 100..400_u64,
    ) {
        let members: Vec<Member> = seen
            .iter()
            .enumerate()
            .map(|(index, (priority, place, in_flight, waiting, obstructed, deleted))| {
                let new = member(&format!("m{index}"), *priority).reports(*in_flight, *waiting, 90);
                let placed = match place {
                    0 => new,
                    1 => new.loading(50),
                    2 => new.ready(60),
                    _ => new.ending(),
                };
                Member { obstructed: *obstructed, deleted: *deleted, ..placed }
            })
            .collect();
        let plan = decided(&members, None, now);
        prop_assert_eq!(&plan, &decided(&members, None, now));
        let started: Vec<usize> = (0..members.len())
            .filter(|index| members[*index].engine.asked == 0 && plan.verdicts[*index].replicas > 0)
            .collect();
        prop_assert!(started.len() <= 1, "{started:?}");
        for index in started {
            prop_assert!(!members[index].deleted && !members[index].obstructed);
            let alone = members.iter().enumerate().all(|(other, member)| {
                other == index || !member.engine.present
            });
            prop_assert!(alone, "{index} starts beside another");
        }
        prop_assert!(plan.revisit.is_none_or(|moment| moment > at(now)));
    }
}
