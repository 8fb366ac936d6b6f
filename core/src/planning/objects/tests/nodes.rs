//! Where engines may run that hang on a claim, and what has to be before one of them ends.

use std::sync::Arc;

use super::*;
use crate::planning::moving::Until;

/// A claim whose volume, or which itself where it has none, can be used like this.
pub(super) fn usable(asked: &str, volume: Option<&str>) -> PersistentVolumeClaim {
    let status = volume.map(|mode| json!({ "phase": "Bound", "accessModes": [mode] }));
    let claim = json!({ "spec": { "accessModes": [asked] }, "status": status });
    serde_json::from_value(claim).unwrap()
}

/// Two engines with these weights, on GPUs.
pub(super) fn two_engines(source: &str) -> Sample {
    let spec = json!({
        "backend": "vllm", "source": source, "gpu": { "count": 1 },
        "serverless": { "maxReplicas": 2 },
    });
    Sample::new(spec).on_nvidia()
}

#[test]
fn k8s_16_engines_on_a_claim_of_one_node_go_to_that_node_and_others_spread() {
    let spreads = |source: &str, claim: Option<PersistentVolumeClaim>| {
        let sample = Sample { claim, ..two_engines(source) };
        let pod = sample.pod();
        let bound = pod.affinity.is_some_and(|affinity| affinity.pod_affinity.is_some());
        assert_eq!(sample.blueprint().unwrap().doubt().is_some(), bound);
        assert_ne!(pod.topology_spread_constraints.is_some(), bound);
        !bound
    };
    assert!(!spreads("HF://a/b", None));
    for mode in ["ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany"] {
        assert!(!spreads("HF://a/b", Some(usable(mode, None))), "{mode}");
    }
    assert!(spreads("HF://a/b", Some(usable("ReadWriteMany", None))));
    assert!(spreads("HF://a/b", Some(usable("ReadWriteOnce", Some("ReadWriteMany")))));
    assert!(spreads("pvc://a/b", Some(usable("ReadOnlyMany", None))), "nobody writes there");
}

#[test]
fn what_a_deployment_mounts_says_the_same_of_its_engines_as_the_model_that_it_was_drawn_of() {
    let (own, shared) = ("HF://a/b", "pvc://a/b");
    for (source, engines, mode, until) in [
        (None, 1, None, Until::Served),
        (None, 2, None, Until::Served),
        (Some(own), 1, Some("ReadWriteMany"), Until::Served),
        (Some(own), 2, Some("ReadWriteMany"), Until::Served),
        (Some(own), 1, Some("ReadWriteOnce"), Until::Placed),
        (Some(own), 2, Some("ReadWriteOnce"), Until::Gone),
        (Some(own), 1, Some("ReadWriteOncePod"), Until::Gone),
        (Some(own), 1, Some("ReadOnlyMany"), Until::Placed),
        (Some(shared), 1, Some("ReadOnlyMany"), Until::Served),
        (Some(shared), 2, Some("ReadOnlyMany"), Until::Served),
        (Some(shared), 1, Some("ReadWriteOnce"), Until::Placed),
        (Some(shared), 2, Some("ReadWriteOnce"), Until::Gone),
        (Some(own), 1, None, Until::Placed),
        (Some(own), 2, None, Until::Gone),
    ] {
        let spec = json!({
            "backend": "simulator", "source": source, "serverless": { "maxReplicas": engines },
        });
        let sample = Sample { claim: mode.map(|mode| usable(mode, None)), ..Sample::new(spec) };
        let blueprint = sample.blueprint().unwrap();
        let row = format!("{source:?}, {engines} engines, {mode:?}");
        assert_eq!(blueprint.until(sample.claim.as_ref()), until, "{row}");
        let pod = sample.pod();
        let mounts = pod.volumes.iter().flatten();
        let mounts = mounts.filter_map(|volume| volume.persistent_volume_claim.as_ref());
        let claims = mounts
            .filter_map(|mount| Some((mount.claim_name.clone(), Arc::new(sample.claim.clone()?))));
        let by_mounts = until_by_mounts(&sample.deployment(), &claims.collect());
        assert_eq!(by_mounts, until, "{row}, by its mounts");
    }
}
