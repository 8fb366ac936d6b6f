//! That pods bound to a process kubelet's nodes live as pods do.

use std::path::Path;

use flexinfer_e2e::{Images, Kubelet, Node};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use crate::shared::{World, eventually};

/// A cluster's namespace with a node of its own, which only this test's pods select.
struct Machine {
    world: World,
    kubelet: Kubelet,
}

impl Machine {
    async fn new() -> Self {
        let world = World::new().await;
        let node = Node::new(&world.namespace)
            .label("test", &world.namespace)
            .resource("nvidia.com/gpu", "1");
        let images = Images::new().with("shell", ["sh", "-c"]);
        let kubelet = Kubelet::start(&world.client, vec![node], images).await.unwrap();
        Self { world, kubelet }
    }

    /// A pod's spec with what every test needs, and `more`.
    fn spec(&self, more: Value) -> Value {
        let mut spec = json!({
            "nodeSelector": { "test": self.world.namespace },
            "terminationGracePeriodSeconds": 20,
        });
        let Value::Object(more) = more else { panic!("not an object: {more}") };
        spec.as_object_mut().unwrap().extend(more);
        spec
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.world.client.clone(), &self.world.namespace)
    }

    async fn run(&self, name: &str, spec: Value) {
        let pod = json!({ "metadata": { "name": name }, "spec": self.spec(spec) });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// A container's status, once it is as awaited.
    async fn until(
        &self,
        awaited: &str,
        pod: &str,
        there: impl Fn(&Pod, &ContainerStatus) -> bool,
    ) -> ContainerStatus {
        eventually(awaited, async || {
            let pod = self.pods().get(pod).await.unwrap();
            let mut containers = pod.status.as_ref()?.container_statuses.clone()?;
            let container = containers.pop()?;
            there(&pod, &container).then_some(container)
        })
        .await
    }

    /// What a container has printed so far.
    fn output(&self, pod: &str, container: &str) -> String {
        let log = format!("{}_{pod}_{container}.log", self.world.namespace);
        std::fs::read_to_string(self.kubelet.logs().join(log)).unwrap_or_default()
    }
}

fn shell(name: &str, script: &str) -> Value {
    json!({ "name": name, "image": "shell", "args": [script] })
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

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
    let mark = machine.kubelet.logs().join("ready");
    let mut container = shell("engine", "sleep 600");
    let exec = json!({ "command": ["test", "-e", mark] });
    container["readinessProbe"] = json!({ "exec": exec, "periodSeconds": 1 });
    machine.run("probed", json!({ "containers": [container] })).await;

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
    let mark = machine.kubelet.logs().join("prepared");
    let mark = mark.to_str().unwrap();
    let mut sidecar = shell("sidecar", "sleep 600");
    sidecar["restartPolicy"] = "Always".into();
    machine
        .run(
            "staged",
            json!({
                "initContainers": [shell("prepare", &format!("echo done > {mark}")), sidecar],
                "containers": [shell("engine", &format!("cat {mark} && sleep 600"))],
            }),
        )
        .await;
    machine.until("it runs", "staged", |_, container| container.ready).await;
    let status = machine.pods().get("staged").await.unwrap().status.unwrap();
    let initial = status.init_container_statuses.unwrap();
    assert!(initial[0].state.as_ref().unwrap().terminated.is_some(), "{initial:?}");
    assert!(initial[1].state.as_ref().unwrap().running.is_some(), "{initial:?}");
    assert_eq!(status.container_statuses.unwrap()[0].restart_count, 0);
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
    eventually("the pod is gone", async || {
        machine.pods().get_opt("leaving").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(machine.output("leaving", "engine").lines().nth(1), Some("leaving"));
    assert!(!Path::new("/proc").join(&process).exists(), "process {process} is left");
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
