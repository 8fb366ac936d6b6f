//! That each pod has an address of its own, which the cluster tells and everybody reaches.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::machine::{Machine, shell};
use crate::shared::eventually;

/// An engine of sorts: it answers with its name on a port that another has too.
fn engine(name: &str) -> Value {
    let script = format!(
        "mkdir /www && cd /www && echo {name} >name && exec python3 -m http.server --bind 0.0.0.0 8000"
    );
    let mut container = shell("engine", &script);
    let get = json!({ "path": "/name", "port": 8000 });
    container["readinessProbe"] = json!({ "httpGet": get, "periodSeconds": 1 });
    container
}

impl Machine {
    async fn run_engine(&self, name: &str) {
        let pod = json!({
            "metadata": { "name": name, "labels": { "app": "engine" } },
            "spec": self.spec(json!({ "containers": [engine(name)] })),
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn service(&self) -> Service {
        let service = json!({
            "metadata": { "name": "engine" },
            "spec": {
                "selector": { "app": "engine" },
                "ports": [{ "port": 80, "targetPort": 8000 }],
            },
        });
        let services: Api<Service> =
            Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let service = serde_json::from_value(service).unwrap();
        services.create(&PostParams::default(), &service).await.unwrap()
    }

    /// The addresses of ready endpoints.
    async fn endpoints(&self) -> BTreeSet<String> {
        let slices: Api<EndpointSlice> =
            Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let slices = slices.list(&ListParams::default()).await.unwrap().items;
        let endpoints = slices.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
        let ready = endpoints.filter(|endpoint| {
            endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
        });
        ready.flat_map(|endpoint| endpoint.addresses).collect()
    }
}

async fn get(address: &str, port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((address, port)).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.trim().to_owned()).unwrap_or_default())
}

#[tokio::test]
async fn two_pods_listen_on_one_port_and_each_is_reached_by_its_address() {
    let machine = Machine::new().await;
    machine.service().await;
    machine.run_engine("first").await;
    machine.run_engine("second").await;
    let addresses = eventually("two ready endpoints", async || {
        let addresses = machine.endpoints().await;
        (addresses.len() == 2).then_some(addresses)
    })
    .await;

    for name in ["first", "second"] {
        let status = machine.pods().get(name).await.unwrap().status.unwrap();
        let address = status.pod_ip.unwrap();
        assert!(addresses.contains(&address), "{address} is not among {addresses:?}");
        assert_eq!(get(&address, 8000, "/name").await.unwrap(), name);
    }
}

#[tokio::test]
async fn a_pod_reaches_another_and_the_api_server() {
    let machine = Machine::new().await;
    machine.run_engine("server").await;
    machine.until("it is ready", "server", |_, container| container.ready).await;
    let address = machine.pods().get("server").await.unwrap().status.unwrap().pod_ip.unwrap();
    let script = format!(
        "curl -s http://{address}:8000/name; \
         curl -s --cacert $AUTHORITY/ca.crt -H \"authorization: Bearer $(cat $AUTHORITY/token)\" \
         https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/version | grep gitVersion; sleep 600"
    );
    let mut container = shell("client", &script);
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    container["env"] = json!([{ "name": "AUTHORITY", "value": path }]);
    machine.run("client", json!({ "containers": [container] })).await;
    let said = eventually("what both said", async || {
        let said = machine.output("client", "client");
        said.contains("gitVersion").then_some(said)
    })
    .await;
    assert!(said.starts_with("server"), "{said}");
}

#[tokio::test]
async fn a_service_leads_to_each_of_its_ready_pods() {
    let machine = Machine::new().await;
    let service = machine.service().await;
    let address = service.spec.unwrap().cluster_ip.unwrap();
    machine.run_engine("first").await;
    machine.run_engine("second").await;
    let mut answered = BTreeSet::new();
    eventually("answers of both", async || {
        answered.extend(get(&address, 80, "/name").await.ok());
        (answered.contains("first") && answered.contains("second")).then_some(())
    })
    .await;
    machine.pods().delete("first", &DeleteParams::default()).await.unwrap();
    eventually("one endpoint", async || (machine.endpoints().await.len() == 1).then_some(())).await;
    // The way is followed by a watch of its own.
    eventually("no answer but of the one that is left", async || {
        let first = get(&address, 80, "/name").await.ok()?;
        let second = get(&address, 80, "/name").await.ok()?;
        (first == "second" && second == "second").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_deleted_pods_address_is_gone_from_the_endpoints() {
    let machine = Machine::new().await;
    machine.service().await;
    machine.run_engine("only").await;
    eventually("a ready endpoint", async || (machine.endpoints().await.len() == 1).then_some(()))
        .await;
    machine.pods().delete("only", &DeleteParams::default()).await.unwrap();
    eventually("no endpoint", async || machine.endpoints().await.is_empty().then_some(())).await;
}
