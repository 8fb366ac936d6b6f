//! That a container finds its volumes where it asks for them, and what it writes elsewhere is its own.

use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, PersistentVolumeClaim, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::machine::{Machine, shell};
use crate::shared::eventually;

impl Machine {
    async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + DeserializeOwned,
        K::DynamicType: Default,
    {
        let api: Api<K> = Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// What a pod's only container printed, once it has ended.
    async fn printed(&self, pod: &str) -> String {
        let ended = |container: &ContainerStatus| {
            container.state.as_ref().is_some_and(|state| state.terminated.is_some())
        };
        self.until("it has ended", pod, |_, container| ended(container)).await;
        self.output(pod, "main")
    }
}

/// A container that says what it finds, and is done.
fn looks(script: &str, mounts: Value) -> Value {
    let mut container = shell("main", script);
    container["volumeMounts"] = mounts;
    container
}

#[tokio::test]
async fn objects_of_the_cluster_are_files() {
    let machine = Machine::new().await;
    machine
        .create::<ConfigMap>(json!({
            "metadata": { "name": "settings" },
            "data": { "colour": "blue", "size": "large" },
        }))
        .await;
    machine
        .create::<Secret>(
            json!({ "metadata": { "name": "key" }, "stringData": { "token": "abc" } }),
        )
        .await;
    let volumes = json!([
        { "name": "settings", "configMap": {
            "name": "settings",
            "items": [{ "key": "colour", "path": "deep/colour.txt" }],
        } },
        { "name": "key", "secret": { "secretName": "key", "defaultMode": 0o400 } },
        { "name": "pod", "projected": { "sources": [
            { "downwardAPI": { "items": [
                { "path": "name", "fieldRef": { "fieldPath": "metadata.name" } },
            ] } },
            { "configMap": { "name": "not-there", "optional": true } },
        ] } },
    ]);
    let script = "cat /etc/settings/deep/colour.txt; stat -c ' %a ' /run/key/token; \
                  cat /run/key/token /var/pod/name";
    let mounts = json!([
        { "name": "settings", "mountPath": "/etc/settings", "readOnly": true },
        { "name": "key", "mountPath": "/run/key" },
        { "name": "pod", "mountPath": "/var/pod" },
    ]);
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [looks(script, mounts)],
        "volumes": volumes,
    });
    machine.run("reader", spec).await;
    assert_eq!(machine.printed("reader").await, "blue 400 \nabcreader");
}

#[tokio::test]
async fn a_container_writes_nowhere_but_into_its_volumes() {
    let machine = Machine::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let script = format!("echo mine >{path}/own; echo ours >/shared/file; echo no >/fixed/file");
    let mounts = json!([
        { "name": "shared", "mountPath": "/shared" },
        { "name": "shared", "mountPath": "/fixed", "readOnly": true },
    ]);
    let shared = folder.path().join("shared");
    let kind = "DirectoryOrCreate";
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [looks(&script, mounts)],
        "volumes": [{ "name": "shared", "hostPath": { "path": shared, "type": kind } }],
    });
    machine.run("writer", spec).await;
    let printed = machine.printed("writer").await;
    assert!(printed.contains("Read-only"), "{printed}");
    assert_eq!(std::fs::read_to_string(shared.join("file")).unwrap(), "ours\n");
    assert!(!folder.path().join("own").exists(), "a container wrote to the machine");
}

#[tokio::test]
async fn a_volume_in_memory_is_as_large_as_it_says_and_shared_by_the_pod() {
    let machine = Machine::new().await;
    let mounts = json!([{ "name": "shm", "mountPath": "/dev/shm" }]);
    let mut first = looks("echo warm >/dev/shm/weights", mounts.clone());
    first["name"] = "load".into();
    let script = "cat /dev/shm/weights; df -k --output=fstype,size /dev/shm | tail -1 | xargs";
    let memory = json!({ "medium": "Memory", "sizeLimit": "8Mi" });
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [first],
        "containers": [looks(script, mounts)],
        "volumes": [{ "name": "shm", "emptyDir": memory }],
    });
    machine.run("quick", spec).await;
    assert_eq!(machine.printed("quick").await, "warm\ntmpfs 8192\n");
}

#[tokio::test]
async fn a_claim_is_bound_and_what_lies_there_outlives_the_pod() {
    let machine = Machine::new().await;
    machine
        .create::<PersistentVolumeClaim>(json!({
            "metadata": { "name": "cache" },
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "resources": { "requests": { "storage": "10Gi" } },
            },
        }))
        .await;
    let pod = |script: &str| {
        json!({
            "restartPolicy": "Never",
            "containers": [looks(script, json!([{ "name": "cache", "mountPath": "/cache" }]))],
            "volumes": [{ "name": "cache", "persistentVolumeClaim": { "claimName": "cache" } }],
        })
    };
    machine.run("fetch", pod("echo weights >/cache/model")).await;
    machine.printed("fetch").await;
    machine.pods().delete("fetch", &DeleteParams::default()).await.unwrap();
    machine.run("engine", pod("cat /cache/model")).await;
    assert_eq!(machine.printed("engine").await, "weights\n");
}

#[tokio::test]
async fn a_container_waits_for_the_secret_that_its_environment_names() {
    let machine = Machine::new().await;
    let mut container = shell("main", "echo $TOKEN of $ADDRESS");
    let field = json!({ "fieldRef": { "fieldPath": "status.podIP" } });
    container["env"] = json!([
        { "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "hub", "key": "token" } } },
        { "name": "ADDRESS", "valueFrom": field },
    ]);
    machine.run("gated", json!({ "restartPolicy": "Never", "containers": [container] })).await;
    let reason =
        |container: &ContainerStatus| container.state.as_ref()?.waiting.as_ref()?.reason.clone();
    let refused = |container: &ContainerStatus| {
        reason(container).is_some_and(|reason| reason == "CreateContainerConfigError")
    };
    machine.until("it says what it lacks", "gated", |_, container| refused(container)).await;
    machine
        .create::<Secret>(
            json!({ "metadata": { "name": "hub" }, "stringData": { "token": "abc" } }),
        )
        .await;
    let printed = machine.printed("gated").await;
    let address = machine.pods().get("gated").await.unwrap().status.unwrap().pod_ip.unwrap();
    assert_eq!(printed, format!("abc of {address}\n"));
}

#[tokio::test]
async fn a_pod_waits_for_a_claim_that_nobody_binds() {
    let machine = Machine::new().await;
    machine
        .create::<PersistentVolumeClaim>(json!({
            "metadata": { "name": "lost" },
            "spec": {
                "storageClassName": "nobody",
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            },
        }))
        .await;
    let spec = json!({
        "containers": [looks("true", json!([{ "name": "lost", "mountPath": "/lost" }]))],
        "volumes": [{ "name": "lost", "persistentVolumeClaim": { "claimName": "lost" } }],
    });
    machine.run("waiting", spec).await;
    eventually("the scheduler says that the claim is not bound", async || {
        let status = machine.pods().get("waiting").await.unwrap().status?;
        let mut conditions = status.conditions?.into_iter();
        let scheduled = conditions.find(|condition| condition.type_ == "PodScheduled")?;
        scheduled.message?.contains("unbound").then_some(())
    })
    .await;
}
