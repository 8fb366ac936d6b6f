//! What a model's status says in each situation, and that it says nothing new where nothing changed.

mod told;

use flexinfer_crds::conditions::{ConditionReason, LoadHindrance};
use flexinfer_crds::model::{Phase, Traffic};
use flexinfer_crds::{Model, ModelSpec};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::*;
use crate::planning::model::Hindrance;
use crate::scaling::Activity;

fn at(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
}

fn id(name: &str) -> ModelId {
    ModelId::new("default", name)
}

fn shared() -> GroupId {
    GroupId::Shared { namespace: "default".into(), name: "gpu0".into() }
}

fn verdict(standing: Standing) -> Verdict {
    let replicas = u32::from(standing == Standing::Holding);
    Verdict { replicas, standing, record: Record::default(), activity: Activity::default() }
}

fn hindrance(reason: LoadHindrance) -> Hindrance {
    Hindrance { reason, message: "in Kubernetes' words".into() }
}

/// What a test changes of a situation that is otherwise plain.
struct Case {
    model: Model,
    engine: Engine,
    verdict: Option<Verdict>,
    obstacle: Option<Obstacle>,
    name_conflict: Option<&'static str>,
    group: GroupId,
    meddled: Option<(ConditionReason, String)>,
    writing: Writing,
    benchmark: Option<(ConditionReason, String)>,
    measured: Option<Measured>,
}

impl Case {
    fn new(standing: Standing) -> Self {
        let mut model = Model::new("m", ModelSpec::default());
        model.metadata.generation = Some(3);
        Self {
            model,
            engine: Engine::default(),
            verdict: Some(verdict(standing)),
            obstacle: None,
            name_conflict: None,
            group: shared(),
            meddled: None,
            writing: Writing::default(),
            benchmark: None,
            measured: None,
        }
    }

    fn loading(mut self) -> Self {
        let node = Some("node-1".to_owned());
        self.engine =
            Engine { asked: 1, present: true, made: Some(at(0)), node, ..Engine::default() };
        self
    }

    fn serving(mut self) -> Self {
        self = self.loading();
        (self.engine.ready, self.engine.ready_since) = (1, Some(at(7)));
        self
    }

    fn status(&self, now: u64) -> ModelStatus {
        status(&Situation {
            model: &self.model,
            group: Some(&self.group),
            obstacle: self.obstacle.as_ref(),
            doubts: &[],
            writing: &self.writing,
            meddled: self.meddled.clone(),
            name_conflict: self.name_conflict,
            engine: &self.engine,
            verdict: self.verdict.as_ref(),
            endpoint: Some("http://m.default.svc:8000".into()),
            gpu: None,
            cached: None,
            unfilled: None,
            cache: None,
            come: None,
            benchmark: self.benchmark.as_ref(),
            measured: self.measured.as_ref(),
            caching: None,
            kv_cache: None,
            now: at(now),
        })
    }
}

fn phase(case: &Case) -> Option<Phase> {
    case.status(10).phase
}

fn condition(status: &ModelStatus, kind: ConditionType) -> (String, String) {
    let found = status.conditions.iter().find(|found| found.type_ == kind.to_string()).unwrap();
    (found.status.clone(), found.reason.clone())
}

#[test]
fn phases_follow_the_engine_and_the_place_in_the_group() {
    let waiting = Standing::Waiting { position: 1, behind: Behind::Leaving(id("b")) };
    let swap = Preempted { by: id("b"), at: at(0) };
    let check = |case: &Case, wanted| assert_eq!(phase(case), Some(wanted), "{:?}", case.verdict);
    check(&Case::new(Standing::Asleep), Phase::Idle);
    check(&Case::new(Standing::Leaving), Phase::Idle);
    check(&Case::new(Standing::Holding), Phase::Pending);
    check(&Case::new(Standing::Holding).loading(), Phase::Loading);
    check(&Case::new(Standing::Holding).serving(), Phase::Ready);
    check(&Case::new(Standing::Draining).serving(), Phase::Ready);
    check(&Case::new(waiting), Phase::Pending);
    check(&Case::new(Standing::Preempted(swap)), Phase::Preempted);
    check(&Case::new(Standing::Barred { until: at(60) }), Phase::Failed);
}

#[test]
fn a_load_that_waiting_cannot_help_has_failed() {
    let mut case = Case::new(Standing::Holding).loading();
    case.engine.hindrance = Some(hindrance(LoadHindrance::ImagePullFailed));
    let status = case.status(10);
    assert_eq!(status.phase, Some(Phase::Failed));
    let ready = condition(&status, ConditionType::Ready);
    assert_eq!(ready, ("False".to_owned(), "ImagePullFailed".to_owned()));
    assert_eq!(status.message.as_deref(), Some("in Kubernetes' words"));
}

#[test]
fn a_pod_that_no_node_takes_is_pending_and_says_why() {
    let mut case = Case::new(Standing::Holding).loading();
    case.engine.node = None;
    case.engine.hindrance = Some(hindrance(LoadHindrance::Unschedulable));
    let status = case.status(10);
    assert_eq!(status.phase, Some(Phase::Pending));
    let schedulable = condition(&status, ConditionType::Schedulable);
    assert_eq!(schedulable, ("False".to_owned(), "Unschedulable".to_owned()));
}

#[test]
fn an_edit_that_cannot_work_says_so_while_the_old_engine_serves() {
    let mut case = Case::new(Standing::Holding).serving();
    case.obstacle = Some(Obstacle {
        condition: ConditionType::ConfigValid,
        reason: ConditionReason::BackendUnsupported.into(),
        message: "spec.backend: there is no `vlm`; did you mean `vllm`?".into(),
        lasting: true,
    });
    let status = case.status(10);
    assert_eq!(status.phase, Some(Phase::Ready));
    assert!(status.message.unwrap().ends_with("; what ran before serves on"));
    case.engine = Engine::default();
    assert_eq!(phase(&case), Some(Phase::Failed));
}

#[test]
fn an_ambiguous_vendor_waits_for_a_node_or_a_word() {
    let mut case = Case::new(Standing::Obstructed);
    case.obstacle = Some(Obstacle {
        condition: ConditionType::Schedulable,
        reason: ConditionReason::AmbiguousGpuVendor.into(),
        message: "say gpu.vendor".into(),
        lasting: true,
    });
    assert_eq!(phase(&case), Some(Phase::Pending));
    let schedulable = condition(&case.status(10), ConditionType::Schedulable);
    assert_eq!(schedulable, ("False".to_owned(), "AmbiguousGPUVendor".to_owned()));
}

#[test]
fn who_waits_is_told_for_whom() {
    let behind = Behind::Turn(Turn::HeldBy(id("b")));
    let status = Case::new(Standing::Waiting { position: 2, behind }).status(10);
    let place = status.shared_group.unwrap();
    assert_eq!(place.state, Some(SharedGroupState::Queued));
    assert_eq!((place.queue_position, place.group_name.as_deref()), (Some(2), Some("gpu0")));
    assert_eq!(status.message.as_deref(), Some("waiting: b has a higher priority and stays"));
}

#[test]
fn who_waits_for_a_protected_model_is_told_how_long() {
    let waiting = |seconds| {
        let behind = Behind::Turn(Turn::NotBefore(at(seconds)));
        Case::new(Standing::Waiting { position: 1, behind })
    };
    let told = |status: ModelStatus| status.shared_group.unwrap().not_before;
    let mut case = waiting(300);
    let first = case.status(10);
    assert_eq!(told(first.clone()), Some(time(at(300))));
    // A moment that moves a little at every look is not written at every look.
    case = waiting(304);
    case.model.status = Some(first.clone());
    assert_eq!(told(case.status(14)), Some(time(at(300))));
    case = waiting(320);
    case.model.status = Some(first.clone());
    assert_eq!(told(case.status(20)), Some(time(at(320))));
    case = Case::new(Standing::Holding);
    case.model.status = Some(first);
    assert_eq!(told(case.status(301)), None);
}

#[test]
fn a_swap_survives_the_controller_in_the_losers_status() {
    let swap = Preempted { by: id("b"), at: at(5) };
    let mut case = Case::new(Standing::Draining).serving();
    let verdict = case.verdict.as_mut().unwrap();
    verdict.record =
        Record { preempted: Some(swap.clone()), draining: Some(at(5)), ..Record::default() };
    let wanted = verdict.record.clone();
    assert_eq!(remembered(&id("m"), Some(&case.status(10))), wanted);
}

#[test]
fn a_model_alone_has_no_place_but_tells_that_it_leaves() {
    let mut case = Case::new(Standing::Holding).serving();
    case.group = GroupId::Alone(id("m"));
    assert_eq!(case.status(10).shared_group, None);
    case.verdict = Some(verdict(Standing::Draining));
    let place = case.status(10).shared_group.unwrap();
    assert_eq!(place.state, Some(SharedGroupState::Draining));
    assert_eq!(place.group_name, None);
}

#[test]
fn k8s_22_a_status_that_says_the_same_later_is_the_same() {
    for case in [
        || Case::new(Standing::Asleep),
        || Case::new(Standing::Holding).loading(),
        || Case::new(Standing::Holding).serving(),
    ] {
        let mut case = case();
        case.engine.substage = Some(LoadingSubstage::LoadingWeights);
        let first = case.status(10);
        case.model.status = Some(first.clone());
        assert_eq!(case.status(500), first);
    }
}

#[test]
fn k8s_22_only_a_flip_moves_a_conditions_time() {
    let mut case = Case::new(Standing::Asleep);
    case.model.status = Some(case.status(10));
    case.verdict = Some(verdict(Standing::Holding));
    let time_of = |status: &ModelStatus| {
        let ready = status.conditions.iter().find(|found| found.type_ == "Ready").unwrap();
        (ready.reason.clone(), ready.last_transition_time.clone())
    };
    let starting = case.status(20);
    assert_eq!(time_of(&starting), ("StartingBackend".to_owned(), time(at(10))));
    case.model.status = Some(starting);
    let serving = case.serving();
    assert_eq!(time_of(&serving.status(30)).1, time(at(30)));
}

#[test]
fn what_gateways_wrote_stays_as_it_is() {
    let mut case = Case::new(Standing::Asleep);
    let traffic = vec![Traffic {
        gateway: "a".into(),
        in_flight: 1,
        waiting: 0,
        peak: 1,
        draining: false,
        renew_time: MicroTime(Timestamp::UNIX_EPOCH),
    }];
    let last_active_time = Some(time(at(3)));
    case.model.status = Some(ModelStatus { traffic, last_active_time, ..ModelStatus::default() });
    let status = case.status(10);
    assert_eq!(status.traffic.len(), 1);
    assert_eq!(status.last_active_time, Some(time(at(3))));
}

#[test]
fn the_time_that_loading_took_is_kept_while_the_model_sleeps() {
    let mut case = Case::new(Standing::Holding).serving();
    case.model.status = Some(case.status(10));
    assert_eq!(last_load(case.model.status.as_ref()), Some(Duration::from_secs(7)));
    case.engine = Engine::default();
    assert_eq!(last_load(Some(&case.status(400))), Some(Duration::from_secs(7)));
}

#[test]
fn k8s_16_a_replica_that_no_node_takes_is_told_beside_one_that_serves() {
    let mut case = Case::new(Standing::Holding).serving();
    let scaled = |status: &ModelStatus| condition(status, ConditionType::Scaled);
    let without = case.status(10);
    assert!(without.conditions.iter().all(|found| found.type_ != "Scaled"), "it is never several");
    case.engine.asked = 2;
    let starting = case.status(10);
    assert_eq!(scaled(&starting), ("False".to_owned(), "ReplicasStarting".to_owned()));
    case.engine.lacking = Some(hindrance(LoadHindrance::Unschedulable));
    let lacking = case.status(10);
    assert_eq!(scaled(&lacking), ("False".to_owned(), "Unschedulable".to_owned()));
    assert_eq!(lacking.phase, Some(Phase::Ready));
    assert_eq!(condition(&lacking, ConditionType::Ready).0, "True");
    let message = lacking.message.clone().unwrap();
    assert!(message.contains("not all replicas do: in Kubernetes' words"), "{message}");
    let told = |old: &ModelStatus, new: &ModelStatus| {
        let told = announcements(Some(old), new, None);
        told.into_iter().map(|told| told.reason).collect::<Vec<_>>()
    };
    assert_eq!(told(&without, &starting), [""; 0], "taking one's time is no news");
    assert_eq!(told(&starting, &lacking), ["Unschedulable"]);
    assert_eq!(told(&lacking, &lacking), [""; 0]);
    (case.engine.lacking, case.engine.ready) = (None, 2);
    assert_eq!(scaled(&case.status(10)), ("True".to_owned(), "ReplicasReady".to_owned()));
}

#[test]
fn an_engine_in_whose_place_another_shall_come_is_none_of_those_that_are_asked_for() {
    let mut case = Case::new(Standing::Holding).serving();
    let scaled = |case: &Case| {
        let status = case.status(10);
        assert_eq!(condition(&status, ConditionType::Ready).0, "True");
        let found = status.conditions.iter().find(|found| found.type_ == "Scaled").cloned();
        found.map(|found| (found.reason, found.message))
    };
    case.engine.apart = 1;
    let starting = Some((
        "ReplicasStarting".to_owned(),
        "0 of 1 replicas serve, beside 1 to be replaced".to_owned(),
    ));
    assert_eq!(scaled(&case), starting, "though it never has several");
    case.engine.lacking = Some(hindrance(LoadHindrance::QuotaExceeded));
    let (reason, message) = scaled(&case).unwrap();
    assert_eq!(reason, "QuotaExceeded");
    assert!(message.contains("in Kubernetes' words; raise the quota"), "{message}");
    let said = case.status(10).message.unwrap();
    assert!(said.contains("raise the quota"), "{said}");
    (case.engine.lacking, case.engine.ready) = (None, 2);
    assert_eq!(scaled(&case).unwrap().0, "ReplicasReady");
    case.engine.apart = 0;
    assert_eq!(scaled(&case), None);
}
