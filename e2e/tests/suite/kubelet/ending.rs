//! How pods end that were told to.

use std::path::Path;

use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::machine::{Machine, shell};
use crate::shared::eventually;

/// A container that notes in the folder `/marks` when it is told to end, and what it has done before.
fn noting(before: &Value) -> Value {
    let script = "trap 'echo told >> /marks/log; exit 0' TERM; echo begun >> /marks/log; while :; do sleep 0.1; done";
    let mut container = shell("engine", script);
    container["volumeMounts"] = json!([{ "name": "marks", "mountPath": "/marks" }]);
    container["lifecycle"] = json!({ "preStop": before });
    container
}

/// A pod called `ending` with such a container and a long time to end in, once it has begun.
async fn runs(machine: &Machine, folder: &Path, before: &Value) {
    let marks = json!({ "name": "marks", "hostPath": { "path": folder } });
    let spec = json!({
        "containers": [noting(before)],
        "volumes": [marks],
        "terminationGracePeriodSeconds": 900,
    });
    machine.run("ending", spec).await;
    noted(folder, "begun\n").await;
}

/// Waits until the container has noted just this.
async fn noted(folder: &Path, expected: &str) {
    eventually("the container's notes", async || {
        let notes = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        (notes == expected).then_some(())
    })
    .await;
}

async fn gone(machine: &Machine, pod: &str) {
    eventually("the pod is gone", async || {
        machine.pods().get_opt(pod).await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_deleted_pod_ends_in_its_own_time_and_leaves_no_process() {
    let machine = Machine::new().await;
    // To a kubelet, two dollars are one.
    let script = "trap 'echo leaving; kill $!; exit 0' TERM; echo $$$$; sleep 600 & wait";
    machine.run("leaving", json!({ "containers": [shell("engine", script)] })).await;
    let process = eventually("its process id", async || {
        machine.output("leaving", "engine").lines().next().map(str::to_owned)
    })
    .await;

    machine.pods().delete("leaving", &DeleteParams::default()).await.unwrap();
    gone(&machine, "leaving").await;
    assert_eq!(machine.output("leaving", "engine").lines().nth(1), Some("leaving"));
    assert!(!Path::new("/proc").join(&process).exists(), "process {process} is left");
}

#[tokio::test]
async fn a_command_before_the_end_comes_before_the_word_to_end() {
    let machine = Machine::new().await;
    let folder = tempfile::tempdir().unwrap();
    let command = ["sh", "-c", "sleep 1; echo before >> /marks/log"];
    runs(&machine, folder.path(), &json!({ "exec": { "command": command } })).await;
    machine.pods().delete("ending", &DeleteParams::default()).await.unwrap();
    noted(folder.path(), "begun\nbefore\ntold\n").await;
    gone(&machine, "ending").await;
}

#[tokio::test]
async fn a_question_before_the_end_is_waited_for() {
    let machine = Machine::new().await;
    let folder = tempfile::tempdir().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let get = json!({ "host": "127.0.0.1", "port": port, "path": "/leave" });
    runs(&machine, folder.path(), &json!({ "httpGet": get })).await;
    machine.pods().delete("ending", &DeleteParams::default()).await.unwrap();
    let (mut asked, _) = server.accept().await.unwrap();
    let mut head = [0; 17];
    asked.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"GET /leave HTTP/1");
    noted(folder.path(), "begun\n").await;
    asked.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    noted(folder.path(), "begun\ntold\n").await;
    gone(&machine, "ending").await;
}

#[tokio::test]
async fn a_pod_that_sleeps_before_its_end_is_told_once_that_is_over() {
    let machine = Machine::new().await;
    let folder = tempfile::tempdir().unwrap();
    runs(&machine, folder.path(), &json!({ "sleep": { "seconds": 2 } })).await;
    machine.pods().delete("ending", &DeleteParams::default()).await.unwrap();
    noted(folder.path(), "begun\ntold\n").await;
    gone(&machine, "ending").await;
}

#[tokio::test]
async fn a_second_word_shortens_the_time_that_a_pod_sleeps_before_its_end() {
    let machine = Machine::new().await;
    let folder = tempfile::tempdir().unwrap();
    runs(&machine, folder.path(), &json!({ "sleep": { "seconds": 800 } })).await;
    machine.pods().delete("ending", &DeleteParams::default()).await.unwrap();
    let ends = machine.pods().get("ending").await.unwrap();
    assert_eq!(ends.metadata.deletion_grace_period_seconds, Some(900));
    noted(folder.path(), "begun\n").await;
    let soon = DeleteParams { grace_period_seconds: Some(1), ..DeleteParams::default() };
    machine.pods().delete("ending", &soon).await.unwrap();
    noted(folder.path(), "begun\ntold\n").await;
    gone(&machine, "ending").await;
}
