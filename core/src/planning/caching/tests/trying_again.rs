//! Jobs that failed: which are tried again, and when.

use flexinfer_crds::conditions::Outlook;

use super::*;
use crate::activation::Reason;

#[test]
fn k8s_20_a_gated_repository_is_tried_again_ever_more_rarely_and_at_once_with_another_secret() {
    for reason in [Reason::GatedRepository, Reason::BadSource] {
        let mut scene = from("HF://a/b").with_claim().failed(i32::from(reason.exit_status()));
        let caching = scene.look();
        assert_eq!(caching.hindrance.map(LoadHindrance::outlook), Some(Outlook::Terminal));
        assert_eq!((caching.step, caching.message.as_str()), (None, "flexinfer-node: told"));
        // The Secret with the token may come or change, and nothing tells that.
        for (awaited, wait) in [
            ("2025-12-31T23:59:00Z", Duration::from_mins(10)),
            ("2025-12-31T23:30:00Z", Duration::from_mins(30)),
            ("2025-12-01T00:00:00Z", Duration::from_hours(1)),
        ] {
            scene.awaited_since = Some(awaited.parse().unwrap());
            assert_eq!(scene.look().look_again, Some(wait), "{reason}, awaited since {awaited}");
        }
        let annotation = (keys::HUB_TOKEN_SECRET.to_owned(), "mine".to_owned());
        scene.model.metadata.annotations = Some([annotation].into());
        assert_eq!(scene.told().0, "delete writer-cache-prefetch", "it has another Secret");
        scene.model.metadata.annotations = None;
        assert_eq!(scene.later(60).told().0, "delete writer-cache-prefetch");
    }
}

#[test]
fn k8s_20_the_reason_is_the_exit_status_and_not_a_text() {
    let mut scene = from("HF://a/b").with_claim().failed(1);
    scene.pods = vec![ended(1, "403M/1.2G Gated")];
    let caching = scene.look();
    assert_eq!(caching.hindrance, Some(LoadHindrance::InitContainerFailed));
    assert_eq!(caching.look_again, Some(Duration::from_mins(10)));
}

#[test]
fn a_job_that_failed_is_tried_again_after_a_while() {
    let scene = from("HF://a/b").with_claim().failed(75).later(9);
    assert_eq!(scene.told(), told("wait", ConditionReason::PrefetchFailed));
    assert_eq!(scene.look().look_again, Some(Duration::from_mins(1)));
    let scene = scene.later(1);
    assert_eq!(scene.told().0, "delete writer-cache-prefetch");
}

/// That `scene`, whose weights are on somebody else's claim `weights`, looks for them again.
fn looks_again(mut scene: Scene, copies: bool) {
    let theirs = |scene: &mut Scene, claim| {
        *(if copies { &mut scene.source } else { &mut scene.claim }) = Some(claim);
    };
    theirs(&mut scene, claim("weights", "1Gi"));
    let mut scene = scene.failed(i32::from(Reason::BadSource.exit_status()));
    for (awaited, wait) in [
        ("2025-12-31T23:59:58Z", Duration::from_secs(15)),
        ("2025-12-31T23:58:00Z", Duration::from_mins(2)),
        ("2025-12-01T00:00:00Z", Duration::from_mins(10)),
    ] {
        scene.awaited_since = Some(awaited.parse().unwrap());
        let caching = scene.look();
        assert_eq!(caching.hindrance, Some(LoadHindrance::BadSource));
        assert_eq!(caching.look_again, Some(wait), "awaited since {awaited}");
    }
    let mut made_late = claim("weights", "1Gi");
    made_late.metadata.creation_timestamp =
        serde_json::from_value(json!("2025-12-31T23:59:59Z")).unwrap();
    theirs(&mut scene, made_late);
    assert_eq!(scene.look().look_again, Some(Duration::from_secs(15)), "the claim is new");
    assert!(scene.later(1).told().0.starts_with("delete writer-cache-"));
}

#[test]
fn what_somebody_else_may_put_on_a_claim_is_looked_for_again_and_ever_more_rarely() {
    looks_again(from("pvc://weights/m"), false);
    let copied = json!({
        "backend": "vllm", "source": "pvc://weights/m", "cache": { "strategy": "SharedPVC" },
    });
    looks_again(Scene::of(copied).with_claim(), true);
    let damaged = i32::from(Reason::DigestMismatch.exit_status());
    let hub = from("HF://a/b").with_claim().failed(damaged).later(600);
    assert_eq!((hub.told().0.as_str(), hub.look().look_again), ("wait", None));
}

#[test]
fn a_full_volume_is_tried_again_too() {
    let full = i32::from(Reason::DiskFull.exit_status());
    let scene = from("HF://a/b").with_claim().failed(full);
    assert_eq!(scene.look().look_again, Some(Duration::from_mins(10)));
}

#[test]
fn a_job_whose_pod_cannot_begin_says_why_and_is_made_anew_once_something_else_is_wanted() {
    let unscheduled = json!({ "metadata": {}, "status": { "phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node",
    }] } });
    let waiting = |why: &str| {
        container_in("Pending", &json!({ "waiting": { "reason": why, "message": "why" } }))
    };
    for (pod, reason, words) in [
        (waiting("ErrImagePull"), LoadHindrance::ImagePullFailed, "image node:1 cannot be pulled"),
        (waiting("CreateContainerConfigError"), LoadHindrance::Provisioning, "cannot be made: why"),
        (serde_json::from_value(unscheduled).unwrap(), LoadHindrance::Unschedulable, "no node"),
    ] {
        let mut scene = from("HF://a/b").with_claim().with_job(json!({ "active": 1 }));
        scene.pods = vec![ended(1, "an earlier try"), pod];
        let caching = scene.look();
        assert_eq!((caching.held_up, caching.hindrance), (Some(reason), Some(reason)));
        assert!(caching.message.contains(words), "{}", caching.message);
        assert_eq!((caching.step, caching.job), (None, Some(JobPhase::Pending)));
        assert_eq!(caching.reason, ConditionReason::PrefetchPending);
        let images = [("FLEXINFER_NODE_IMAGE".to_owned(), "registry.example/node:2".to_owned())];
        scene.settings.images = Images::of(images);
        assert_eq!(scene.told().0, "delete writer-cache-prefetch");
        scene.pods = vec![container_in("Running", &json!({ "running": {} }))];
        assert_eq!(scene.told(), told("wait", ConditionReason::PrefetchRunning), "it works");
    }
}
