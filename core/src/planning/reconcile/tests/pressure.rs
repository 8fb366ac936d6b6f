//! Engines whose key-value cache is full.

use super::*;

#[test]
fn an_engine_under_pressure_is_started_anew_with_fewer_sequences() {
    let mut full = serving(json!({
        "backend": "vllm", "source": "file:///weights", "image": "vllm:1",
        "config": { "maxNumSeqs": 64 }, "kvCache": { "pressurePolicy": "Reconfigure" },
    }));
    full.kv_cache_usage.insert("n1".to_owned(), 0.92);
    let wanted = planned_at(&full, 60);
    assert!(arguments(&wanted).contains("--max-num-seqs 32"), "{}", arguments(&wanted));
    let told = &wanted.announcements.last().unwrap();
    assert_eq!((told.warning, told.reason.as_str()), (true, "KVCachePressure"));
    assert_eq!(
        told.note,
        "its key-value cache is 92 % full; its engine starts anew with 32 sequences instead of 64"
    );
    full.model.status = Some(wanted.status);
    let again = planned_at(&full, 90);
    assert!(again.announcements.is_empty(), "{:?}", again.announcements);
    full.kv_cache_usage.insert("n1".to_owned(), 0.2);
    let relieved = planned_at(&full, 400);
    assert!(arguments(&relieved).contains("--max-num-seqs 64"));
    assert_eq!(relieved.announcements[0].reason, "KVCacheRestored");
}

#[test]
fn a_model_that_is_evicted_sleeps_and_is_told_of() {
    let mut full =
        serving(json!({ "backend": "simulator", "kvCache": { "pressurePolicy": "Evict" } }));
    full.kv_cache_usage.insert("n1".to_owned(), 0.92);
    let wanted = planned_at(&full, 60);
    let kv_cache = wanted.status.kv_cache.clone().unwrap();
    assert_eq!(kv_cache.evicted, Some(false));
    let standing = wanted.verdict.as_ref().unwrap().standing.clone();
    assert_eq!(standing, Standing::Draining, "a gateway may have given it its first request");
    full.record = wanted.verdict.unwrap().record;
    // Nothing is in flight.
    let wanted = planned_at(&full, 61);
    assert_eq!(wanted.verdict.as_ref().unwrap().standing, Standing::Leaving);
    assert_eq!(deployment(&wanted).spec.replicas, Some(0));
    full.model.status = Some(wanted.status);
    let asleep = &mut full;
    asleep.deployment.as_mut().unwrap().spec.replicas = Some(0);
    asleep.pods.clear();
    let wanted = planned_at(asleep, 70);
    assert_eq!(wanted.status.kv_cache.as_ref().unwrap().evicted, Some(true));
    assert!(wanted.announcements.iter().any(|told| told.reason == "KVCacheEvicted"));
}

#[test]
fn the_fullest_cache_of_all_replicas_counts() {
    let mut model =
        serving(json!({ "backend": "simulator", "kvCache": { "pressurePolicy": "Observe" } }));
    let mut second = model.pods[0].clone();
    second.metadata.name = Some("m-2".to_owned());
    second.spec.as_mut().unwrap().node_name = Some("n2".to_owned());
    model.pods.push(second);
    model.kv_cache_usage.insert("n1".to_owned(), 0.1);
    model.kv_cache_usage.insert("n2".to_owned(), 0.95);
    let kv_cache = planned_at(&model, 60).status.kv_cache.unwrap();
    assert_eq!((kv_cache.pressure, kv_cache.utilization.as_deref()), (Some(true), Some("0.9500")));
}
