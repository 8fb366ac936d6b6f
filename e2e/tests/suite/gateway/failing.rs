//! Waits that cannot end well end at once.

use serde_json::json;

use super::world::{Site, code};

#[tokio::test(flavor = "multi_thread")]
async fn queue_11_those_who_wait_are_told_why_the_model_cannot_come_up() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    let asking = gateway.asking("a");
    gateway.waits("a", 1).await;
    site.say(
        "a",
        &json!({
            "phase": "Pending",
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "Unschedulable",
                "message": "no node has a GPU", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        }),
    )
    .await;
    gateway.sees("a", |shown| shown["phase"] == "Pending").await;
    gateway.waits("a", 1).await;
    site.say(
        "a",
        &json!({
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "ImagePullFailed",
                "message": "nobody has engine:latest", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        }),
    )
    .await;
    let answer = asking.await.unwrap();
    assert_eq!((answer.status(), code(&answer)), (503, "activation_failed".to_owned()));
    assert!(answer.text().contains("nobody has engine:latest"), "{}", answer.text());
    assert!(answer.head.header("retry-after").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_in_vain_for_a_protected_gpu_is_told_when_to_come_back() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway =
        site.gateway_by("one", site.kubeconfig().await, &["--cold-start-timeout", "3s"]).await;
    let free = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(600);
    let place = json!({ "state": "Queued", "queuePosition": 1, "notBefore": format!("{free:.0}") });
    site.say("a", &json!({ "phase": "Pending", "sharedGroup": place })).await;
    gateway.sees("a", |shown| shown["phase"] == "Pending").await;
    let answer = gateway.ask("a").await;
    assert_eq!(code(&answer), "activation_timeout");
    let after: u64 = answer.head.header("retry-after").unwrap().parse().unwrap();
    assert!((300..=600).contains(&after), "{after}");
    assert!(answer.text().contains("its GPU is taken"), "{}", answer.text());
}
