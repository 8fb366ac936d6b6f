//! Replicas that another autoscaler sets.

use super::*;

#[test]
fn k8s_01_replicas_that_another_autoscaler_sets_are_its_own() {
    let mut scaled = simulated("m");
    scaled.model.metadata.annotations =
        Some([(keys::AUTOSCALER.to_owned(), "external".to_owned())].into());
    assert_eq!(deployment(&planned(&scaled)).spec.replicas, Some(0), "until it is made");
    let mut there = deployment(&planned(&scaled)).clone();
    let step = |member: &Member| match planned(member).engine {
        WantedEngine::ScaledElsewhere { deployment, step } => {
            assert_eq!(deployment.spec.replicas, None);
            step
        }
        other => panic!("{other:?}"),
    };
    scaled.effective.as_mut().unwrap().min_replicas = 1;
    scaled.deployment = Some(there.clone());
    assert_eq!(step(&scaled), Some(1), "a sleeping model is woken");
    there.spec.replicas = Some(4);
    scaled.deployment = Some(there);
    assert_eq!(step(&scaled), None, "one that is up is left alone");
    scaled.model.metadata.annotations = None;
    assert_eq!(deployment(&planned(&scaled)).spec.replicas, Some(1), "its own again");
}

#[test]
fn queue_14_one_that_another_autoscaler_has_up_is_never_set_to_fewer_by_demand() {
    let mut scaled = simulated("m");
    scaled.model.metadata.annotations =
        Some([(keys::AUTOSCALER.to_owned(), "external".to_owned())].into());
    let mut there = deployment(&planned(&scaled)).clone();
    let status = |waiting: i32| {
        let gateways = ["a", "b", "c", "d", "e"];
        let entry = |gateway| {
            json!({
                "gateway": gateway, "inFlight": 0, "waiting": waiting, "peak": waiting,
                "renewTime": "2026-01-01T00:00:00.000000Z",
            })
        };
        let traffic: Vec<_> = gateways.into_iter().map(entry).collect();
        serde_json::from_value(json!({ "traffic": traffic })).unwrap()
    };
    let mut step = |replicas: i32, waiting: i32| {
        there.spec.replicas = Some(replicas);
        scaled.deployment = Some(there.clone());
        scaled.demand.look(Some(&status(waiting)), at(0));
        match planned(&scaled).engine {
            WantedEngine::ScaledElsewhere { step, .. } => step,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(step(0, 1), Some(1), "five gateways wake one model once");
    assert_eq!(step(3, 1), None);
    assert_eq!(step(1, 1), None);
}
