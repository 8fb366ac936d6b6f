//! Several controllers, of which one acts.

use std::time::Duration;

use flexinfer_crds::model::Phase;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::Child;
use tokio::time::timeout;

use super::{Desk, simulated};
use crate::shared::eventually;

/// Starts a controller that leads when it may, under a name of its own.
fn candidate(desk: &Desk, name: &str) -> Child {
    desk.controller(&["--leader-elect", "--pod-name", name])
}

async fn holder(desk: &Desk) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    let holder = leases.get_opt("flexinfer-controller").await.unwrap()?.spec?.holder_identity?;
    Some(holder.split('_').next()?.to_owned())
}

async fn until_held_by(desk: &Desk, name: &str) {
    eventually(&format!("the lease is held by {name}"), async || {
        (holder(desk).await.as_deref() == Some(name)).then_some(())
    })
    .await;
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_leader_that_is_told_to_stop_hands_over_at_once() {
    let desk = Desk::without_controller().await;
    let mut first = candidate(&desk, "first");
    until_held_by(&desk, "first").await;
    let _second = candidate(&desk, "second");
    signal(&first, Signal::TERM);
    assert!(first.wait().await.unwrap().success());
    until_held_by(&desk, "second").await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
}

#[tokio::test]
async fn k8s_04_a_leader_that_was_paused_writes_nothing_after_another_began() {
    let desk = Desk::without_controller().await;
    let mut first = candidate(&desk, "first");
    until_held_by(&desk, "first").await;
    let _second = candidate(&desk, "second");
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;

    signal(&first, Signal::STOP);
    until_held_by(&desk, "second").await;
    // Something to do, which the paused one sees as soon as it goes on.
    desk.apply("later", &simulated(&json!({}))).await;
    desk.until_phase("later", Phase::Idle).await;
    let version = desk.api().get("later").await.unwrap().metadata.resource_version;
    signal(&first, Signal::CONT);
    let ended = timeout(Duration::from_secs(60), first.wait()).await;
    assert!(!ended.unwrap().unwrap().success(), "it goes on");
    let after = desk.api().get("later").await.unwrap().metadata.resource_version;
    assert_eq!(after, version, "it wrote once more");
    assert_eq!(holder(&desk).await.as_deref(), Some("second"));
}
