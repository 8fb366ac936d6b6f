//! Models that ask to be measured.

use super::*;

#[test]
fn a_model_that_asks_to_be_measured_gets_a_job_once_one_kind_of_node_serves_it() {
    let mut model = simulated("m");
    model.model.metadata.annotations = Some([(keys::BENCHMARK.into(), "auto".into())].into());
    model.nodes = vec![gpu_node("a", "sm_89"), gpu_node("b", "sm_90")];
    let complete = |wanted: &Wanted| {
        let all = &wanted.status.conditions;
        let found = all.iter().find(|found| found.type_ == "BenchmarkComplete").unwrap();
        (found.reason.clone(), found.message.clone())
    };
    let asleep = planned(&model);
    assert_eq!((asleep.jobs.len(), &*complete(&asleep).0), (0, "BenchmarkPending"));
    model.pods = vec![serving_on("a"), serving_on("b")];
    let mixed = planned(&model);
    assert_eq!(mixed.jobs, []);
    assert!(complete(&mixed).1.contains("several kinds of nodes"), "{:?}", complete(&mixed));

    model.pods.pop();
    let job = planned(&model).jobs.remove(0);
    model.jobs = vec![job];
    let running = planned(&model);
    assert_eq!((running.jobs.len(), &*complete(&running).0), (0, "BenchmarkRunning"));
    assert_eq!(running.status.cache, None, "it is no Job of the weights");

    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    model.jobs.clear();
    assert_eq!(planned(&model).jobs, [], "nobody measures what is going");
}
