//! Groups on a cluster as tables: what is seen, and what shall be.

mod failing;
mod sleeping;
mod swapping;

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
    serving_since: Option<Moment>,
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
        serving_since: None,
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
            serving_since: member.serving_since,
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
