//! Who is up, and how one that nobody asks for goes.

use super::*;

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
fn queue_18_a_model_that_no_gateway_spoke_of_waits_for_a_first_word_before_it_goes() {
    let unknown = member("a", 100).ready(20);
    let plan = decided(std::slice::from_ref(&unknown), None, 321);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![1], &Standing::Draining));
    assert_eq!(plan.revisit, Some(at(322)));
    let draining = Member { record: plan.verdicts[0].record.clone(), ..unknown };
    let silent = decided(std::slice::from_ref(&draining), None, 322);
    assert_eq!((replicas(&silent), standing(&silent, 0)), (vec![0], &Standing::Leaving));
    let spoke = draining.reports(1, 0, 322);
    assert_eq!(replicas(&decided(&[spoke], None, 322)), [1]);
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
fn a_deleted_model_holds_the_gpu_until_its_pods_are_gone() {
    let mut deleted = Member { deleted: true, ..member("a", 200).ready(20) };
    deleted.record.draining = Some(at(99));
    let asked = member("b", 100).reports(0, 1, 100);
    let plan = decided(&[deleted.clone(), asked.clone()], None, 100);
    assert_eq!(replicas(&plan), [0, 0]);
    assert_eq!(standing(&plan, 0), &Standing::Leaving);
    let gone = Member { engine: Engine::default(), ..deleted };
    let plan = decided(&[gone, asked], None, 101);
    assert_eq!((replicas(&plan), standing(&plan, 0)), (vec![0, 1], &Standing::Gone));
}

#[test]
fn a_preloaded_model_that_nobody_used_stays_up_through_a_controllers_restart() {
    let mut preloaded = member("a", 100).ready(20);
    preloaded.model.preload = true;
    let condition = serde_json::json!({
        "type": "Ready", "status": "True", "reason": "BackendReady", "message": "",
        "lastTransitionTime": "1970-01-12T13:46:40Z",
    });
    let conditions = vec![serde_json::from_value(condition).unwrap()];
    let up = ModelStatus { conditions, ..ModelStatus::default() };
    preloaded.demand.look(Some(&up), at(5000));
    assert_eq!(replicas(&decided(std::slice::from_ref(&preloaded), None, 50_000)), [1]);
    let used = preloaded.reports(0, 0, 50_000).reports(1, 0, 50_001).reports(0, 0, 50_002);
    let plan = decided(&[used], None, 50_400);
    assert_eq!(standing(&plan, 0), &Standing::Draining, "a preload ends with its first use");
}

#[test]
fn an_engine_that_came_in_the_place_of_another_begins_no_new_time_of_rest() {
    let mut moved = member("a", 100).ready(300).reports(0, 0, 310);
    assert_eq!(standing(&decided(std::slice::from_ref(&moved), None, 321), 0), &Standing::Holding);
    moved.serving_since = Some(at(20));
    let plan = decided(std::slice::from_ref(&moved), None, 321);
    assert_eq!(standing(&plan, 0), &Standing::Draining, "nobody has asked since it began to serve");
    moved.serving_since = Some(at(310));
    let plan = decided(&[moved], None, 601);
    assert_eq!(standing(&plan, 0), &Standing::Draining, "it is told a moment after it is so");
}
