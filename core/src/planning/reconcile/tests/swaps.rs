//! How a model came to its GPU.

use super::*;
use crate::planning::group::Coming;

#[test]
fn the_times_of_a_swap_are_told_when_the_newcomer_serves_and_never_again() {
    let mut newcomer = serving(json!({ "backend": "simulator" }));
    let loading = ModelStatus { phase: Some(Phase::Loading), ..ModelStatus::default() };
    newcomer.model.status = Some(loading.clone());
    let coming = Coming { decided: at(0), drained: Some(at(2)), started: Some(at(5)) };
    newcomer.record.coming = Some(coming);
    let told = |wanted: &Wanted| -> Vec<bool> {
        let ready = wanted.announcements.iter().filter(|told| told.reason == "Ready");
        ready.map(|told| told.own && told.note.contains("draining the other took 2.0 s")).collect()
    };
    let first = planned_at(&newcomer, 10);
    assert_eq!(told(&first), [true]);
    newcomer.model.status = Some(first.status);
    newcomer.record = first.verdict.unwrap().record;
    let next = planned_at(&newcomer, 20);
    assert_eq!(told(&next), [false; 0]);
    newcomer.record = next.verdict.unwrap().record;
    // Its engine breaks down and is started anew, without a swap.
    newcomer.model.status = Some(loading);
    assert_eq!(told(&planned_at(&newcomer, 30)), [false]);
}
