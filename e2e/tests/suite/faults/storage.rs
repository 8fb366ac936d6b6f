//! What is below the API server: an etcd that stands still again and again, and one that forgets so soon that
//! whoever was away is told that its place in the watch has expired.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_crds::model::Phase;
use flexinfer_e2e::{Cluster, Flags};
use flexinfer_testkit::tempdir;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::pair::{NAMES, Pair};
use crate::controller::{Desk, simulated};
use crate::gateway::start;
use crate::line::Line;
use crate::shared::World;

async fn cluster(api_server: &[&str]) -> Arc<Cluster> {
    let api_server = api_server.iter().map(|&flag| flag.to_owned()).collect();
    let flags = Flags { api_server, ..Flags::default() };
    Arc::new(Cluster::start_with(&flags).await.unwrap())
}

/// Holds etcd up for most of each second.
async fn hold_up(cluster: Arc<Cluster>, mut on: watch::Receiver<bool>) {
    while *on.borrow_and_update() {
        let stall = cluster.stall_etcd();
        sleep(Duration::from_millis(700)).await;
        drop(stall);
        sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_etcd_that_stands_still_models_are_swapped_and_no_request_is_lost() {
    let cluster = cluster(&[]).await;
    let mut pair = Pair::of(World::of(Arc::clone(&cluster)).await).await;
    let kubeconfig = cluster.kubeconfig();
    // It has a lease to renew as well.
    pair.desk.start_controller_by(&kubeconfig, &["--leader-elect"]);
    pair.ask(NAMES[0]).await;
    let (slow, state) = watch::channel(true);
    let slowing = tokio::spawn(hold_up(Arc::clone(&cluster), state));
    for name in [NAMES[1], NAMES[0], NAMES[1]] {
        // While nobody wants the other, a model that is up is served as ever.
        for _ in 0..5 {
            pair.ask(name).await;
        }
    }
    slow.send_replace(false);
    slowing.await.unwrap();
    pair.settled(NAMES[1], "after etcd was slow").await;
}

/// Whether a program's log says that it asked for a past that is not kept any more.
fn came_too_late(log: &str) -> bool {
    ["too old", "Expired", "compacted"].iter().any(|word| log.contains(word))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_away_for_longer_than_the_past_is_kept_sees_all_that_came_and_went() {
    // Without a cache the API server knows no more of the past than etcd, which keeps two seconds of it.
    let cluster = cluster(&["--watch-cache=false", "--etcd-compaction-interval=2s"]).await;
    let mut desk = Desk::of(World::of(Arc::clone(&cluster)).await).await;
    let (folder, other) = (tempdir().unwrap(), tempdir().unwrap());
    let (line, kubeconfig) = Line::to(&cluster.kubeconfig(), folder.path()).await;
    let (second_line, gateways) = Line::to(&cluster.kubeconfig(), other.path()).await;
    desk.start_controller_by(&kubeconfig, &[]);
    let gateway = start(&desk.models, "one", gateways, &["--log-level", "debug"]).await;
    desk.apply("stays", &simulated(&json!({}))).await;
    desk.apply("goes", &simulated(&json!({}))).await;
    for name in ["stays", "goes"] {
        gateway.knows(name).await;
        desk.until_phase(name, Phase::Idle).await;
    }

    line.cut();
    second_line.cut();
    let models = desk.api();
    let unpinned = json!({ "metadata": { "finalizers": null } });
    let patch = kube::api::Patch::Merge(unpinned);
    models.patch("goes", &kube::api::PatchParams::default(), &patch).await.unwrap();
    models.delete("goes", &kube::api::DeleteParams::default()).await.unwrap();
    desk.apply("comes", &simulated(&json!({}))).await;
    // Something has to happen for the past to be long.
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(8) {
        let tick = json!({ "metadata": { "annotations": {
            "tests.flexinfer.ai/tick": since.elapsed().as_millis().to_string(),
        } } });
        let patch = kube::api::Patch::Merge(tick);
        models.patch("stays", &kube::api::PatchParams::default(), &patch).await.unwrap();
        sleep(Duration::from_millis(200)).await;
    }
    line.mend();
    second_line.mend();

    gateway.knows("comes").await;
    gateway.sees("goes", serde_json::Value::is_null).await;
    desk.until_phase("comes", Phase::Idle).await;
    for name in ["comes", "stays"] {
        let answer = gateway.ask(name).await;
        assert_eq!(answer.status(), 200, "{name}: {}\n{}", answer.text(), desk.log());
    }
    let gateways = gateway.program.lines().join("\n");
    for log in [desk.log(), gateways] {
        assert!(came_too_late(&log), "it missed nothing, so this shows nothing:\n{log}");
    }
}
