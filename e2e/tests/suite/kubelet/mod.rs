//! That pods bound to a process kubelet's nodes live as pods do.

mod ending;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use crate::machine::{Machine, phase, shell};
use crate::shared::eventually;

#[tokio::test]
async fn a_deployment_asking_for_a_gpu_becomes_available_on_a_node_with_one() {
    let machine = Machine::new().await;
    let mut container = shell("engine", "sleep 600");
    container["resources"] = json!({ "limits": { "nvidia.com/gpu": "1" } });
    let labels = json!({ "app": "engine" });
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "engine" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": machine.spec(json!({ "containers": [container] })),
            },
        },
    }))
    .unwrap();
    let client = machine.world.client.clone();
    let deployments: Api<Deployment> = Api::namespaced(client, &machine.world.namespace);
    deployments.create(&PostParams::default(), &deployment).await.unwrap();

    eventually("one of two replicas, for there is one GPU", async || {
        let status = deployments.get("engine").await.unwrap().status?;
        (status.available_replicas == Some(1)).then_some(())
    })
    .await;
    let pods = machine.pods().list(&ListParams::default()).await.unwrap().items;
    let mut phases: Vec<_> = pods.iter().map(phase).collect();
    phases.sort_unstable();
    assert_eq!(phases, ["Pending", "Running"]);
}

#[tokio::test]
async fn a_pod_is_ready_when_its_probe_says_so() {
    let machine = Machine::new().await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ready");
    let mut container = shell("engine", "sleep 600");
    let exec = json!({ "command": ["test", "-e", "/marks/ready"] });
    container["readinessProbe"] = json!({ "exec": exec, "periodSeconds": 1 });
    container["volumeMounts"] = json!([{ "name": "marks", "mountPath": "/marks" }]);
    let marks = json!({ "name": "marks", "hostPath": { "path": folder.path() } });
    machine.run("probed", json!({ "containers": [container], "volumes": [marks] })).await;

    let status = machine.until("it runs", "probed", |pod, _| phase(pod) == "Running").await;
    assert!(!status.ready, "ready before its probe passed");
    std::fs::write(&mark, "").unwrap();
    machine.until("it is ready", "probed", |_, container| container.ready).await;
    std::fs::remove_file(&mark).unwrap();
    machine.until("it is not ready", "probed", |_, container| !container.ready).await;
}

#[tokio::test]
async fn a_container_that_ends_is_started_again_and_counted() {
    let machine = Machine::new().await;
    machine.run("crashing", json!({ "containers": [shell("engine", "exit 7")] })).await;
    let crashed = |_: &Pod, container: &ContainerStatus| container.restart_count >= 2;
    let status = machine.until("it was started again twice", "crashing", crashed).await;
    let end = status.last_state.unwrap().terminated.unwrap();
    assert_eq!((end.exit_code, end.reason.as_deref()), (7, Some("Error")));
}

#[tokio::test]
async fn init_containers_come_first_and_a_sidecar_stays() {
    let machine = Machine::new().await;
    let mut sidecar = shell("sidecar", "sleep 600");
    sidecar["restartPolicy"] = "Always".into();
    let mut prepare = shell("prepare", "echo done > /shared/prepared");
    let mut engine = shell("engine", "cat /shared/prepared && sleep 600");
    for container in [&mut prepare, &mut engine] {
        container["volumeMounts"] = json!([{ "name": "shared", "mountPath": "/shared" }]);
    }
    let spec = json!({
        "initContainers": [prepare, sidecar],
        "containers": [engine],
        "volumes": [{ "name": "shared", "emptyDir": {} }],
    });
    machine.run("staged", spec).await;
    machine.until("it runs", "staged", |_, container| container.ready).await;
    let status = machine.pods().get("staged").await.unwrap().status.unwrap();
    let initial = status.init_container_statuses.unwrap();
    assert!(initial[0].state.as_ref().unwrap().terminated.is_some(), "{initial:?}");
    assert!(initial[1].state.as_ref().unwrap().running.is_some(), "{initial:?}");
    assert_eq!(status.container_statuses.unwrap()[0].restart_count, 0);
}

#[tokio::test]
async fn a_job_is_complete_when_its_process_has_succeeded() {
    let machine = Machine::new().await;
    let mut container = shell("copy", "echo copying for $MODEL on $(NODE)");
    let node = json!({ "fieldRef": { "fieldPath": "spec.nodeName" } });
    container["env"] =
        json!([{ "name": "MODEL", "value": "llama" }, { "name": "NODE", "valueFrom": node }]);
    let spec = machine.spec(json!({ "restartPolicy": "Never", "containers": [container] }));
    let job = json!({
        "metadata": { "name": "copy" },
        "spec": { "template": { "spec": spec } },
    });
    let jobs: Api<Job> = Api::namespaced(machine.world.client.clone(), &machine.world.namespace);
    jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    eventually("the job is complete", async || {
        let status = jobs.get("copy").await.unwrap().status?;
        (status.succeeded == Some(1)).then_some(())
    })
    .await;
    let pods = machine.pods().list(&ListParams::default()).await.unwrap().items;
    let pod = pods[0].metadata.name.as_deref().unwrap();
    let printed = machine.output(pod, "copy");
    assert_eq!(printed, format!("copying for llama on {}\n", machine.world.namespace));
}

#[tokio::test]
async fn what_cannot_be_run_says_so() {
    let machine = Machine::new().await;
    let container = json!({ "name": "engine", "image": "nowhere/to-be-found" });
    machine.run("missing", json!({ "containers": [container] })).await;
    let reason =
        |container: &ContainerStatus| container.state.as_ref()?.waiting.as_ref()?.reason.clone();
    let status =
        machine.until("a reason", "missing", |_, container| reason(container).is_some()).await;
    assert_eq!(reason(&status).as_deref(), Some("ErrImagePull"));
}
