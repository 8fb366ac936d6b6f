//! Gateways before a real API server, with the test in the place of the controller: it writes endpoints and
//! status, and its engines are simulators on this machine's own address.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use flexinfer_testkit::client::{Answer, Client};
use flexinfer_testkit::simulator::{Running, Settings, Simulator};
use flexinfer_testkit::{Program, TempDir, tempdir};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::crds::{Models, model};
use crate::rights::Account;
use crate::shared::eventually;

/// How long a state may take to come about on a slow machine.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

const CHAT: &str = "/v1/chat/completions";

/// A namespace with models, before which gateways are started.
pub(crate) struct Site {
    pub(crate) models: Models,
    address: IpAddr,
    folder: TempDir,
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self { models: Models::new().await, address: own_address(), folder: tempdir().unwrap() }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.models.world.namespace
    }

    /// A simulated model that shares with nobody.
    pub(crate) async fn simulated(&self, name: &str) {
        self.models.apply(&model(name, &json!({ "backend": "simulator" }))).await;
    }

    /// The same, and whoever asks for it waits for longer than any absence lasts.
    pub(crate) async fn patient(&self, name: &str) {
        let serverless = json!({ "coldStartTimeout": "15m" });
        let spec = json!({ "backend": "simulator", "serverless": serverless });
        self.models.apply(&model(name, &spec)).await;
    }

    /// An engine where the API server accepts its address, for whichever of the tests' models.
    pub(crate) async fn engine(&self, settings: Settings) -> Running {
        let host = self.address.to_string();
        let models = ["a", "b", "ready", "asleep"].map(str::to_owned).to_vec();
        Simulator::start(Settings { host, models, ..settings }).await.unwrap()
    }

    /// The engine's endpoint in a slice of its own, as the control plane writes it.
    pub(crate) async fn list(&self, model: &str, engine: &Running) -> Listed {
        let address = address_of(engine);
        let name = format!("{model}-{}", address.port());
        let listed = Listed { slices: self.slices(), model: model.to_owned(), name, address };
        listed.write(&json!({ "ready": true }), None).await;
        listed
    }

    pub(crate) fn slices(&self) -> Api<EndpointSlice> {
        Api::namespaced(self.models.world.client.clone(), self.namespace())
    }

    /// Writes a part of a model's status, as the controller does.
    pub(crate) async fn say(&self, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.models.api().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn status(&self, name: &str) -> Value {
        self.models.api().get(name).await.unwrap().data["status"].clone()
    }

    /// Waits until somebody reports what `wanted` accepts of a model's traffic.
    pub(crate) async fn traffic(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually("the traffic is reported", async || {
            let status = self.status(name).await;
            let traffic = status["traffic"].as_array().cloned().unwrap_or_default();
            traffic.iter().any(&wanted).then_some(status)
        })
        .await
    }

    /// A gateway that serves this namespace.
    pub(crate) async fn gateway(&self, name: &str) -> Gateway {
        let kubeconfig = self.kubeconfig().await;
        self.gateway_by(name, kubeconfig, &[]).await
    }

    /// The same, reaching the API server by another configuration.
    pub(crate) async fn gateway_by(
        &self,
        name: &str,
        kubeconfig: PathBuf,
        flags: &[&str],
    ) -> Gateway {
        start(&self.models, name, kubeconfig, flags).await
    }

    /// A configuration by which a gateway has the chart's rights.
    pub(crate) async fn kubeconfig(&self) -> PathBuf {
        self.models.world.kubeconfig_of(Account::Gateway).await
    }

    /// A folder of the test's own.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

/// A gateway called `name` before the Models of a namespace.
pub(crate) async fn start(
    models: &Models,
    name: &str,
    kubeconfig: PathBuf,
    flags: &[&str],
) -> Gateway {
    let mut command = Command::new(built("flexinfer-gateway"));
    command.args(["kubernetes", "--namespace", &models.world.namespace, "--gateway-name", name]);
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    command.args(flags).env("PROXY_SHUTDOWN_DRAIN_DELAY", "0s").env("KUBECONFIG", kubeconfig);
    let mut program = Program::start(&mut command).unwrap();
    let line = program.line("\"serving\"", BOUND).await.unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    let address = |field: &str| line[field].as_str().unwrap().parse().unwrap();
    Gateway { address: address("address"), admin: address("admin"), program }
}

/// An engine's endpoint, as far as the API server knows it.
pub(crate) struct Listed {
    slices: Api<EndpointSlice>,
    model: String,
    name: String,
    pub(crate) address: SocketAddr,
}

impl Listed {
    /// Its conditions and its node are now these.
    pub(crate) async fn write(&self, conditions: &Value, node: Option<&str>) {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": self.name,
                "labels": {
                    "flexinfer.ai/model": self.model,
                    "kubernetes.io/service-name": self.model,
                },
            },
            "addressType": "IPv4",
            "ports": [{ "name": "http", "port": self.address.port(), "protocol": "TCP" }],
            "endpoints": [{
                "addresses": [self.address.ip().to_string()],
                "conditions": conditions,
                "nodeName": node,
            }],
        });
        let parameters = PatchParams::apply("test").force();
        self.slices.patch(&self.name, &parameters, &Patch::Apply(slice)).await.unwrap();
    }
}

/// A gateway's program.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) program: Program,
}

impl Gateway {
    /// Asks a model, and waits for the whole answer.
    pub(crate) async fn ask(&self, model: &str) -> Answer {
        ask(self.address, model).await
    }

    /// The same in the background.
    pub(crate) fn asking(&self, model: &str) -> JoinHandle<Answer> {
        tokio::spawn(asked(self.address, model.to_owned()))
    }

    /// A page of the admin port as JSON.
    pub(crate) async fn page(&self, path: &str) -> Value {
        get(self.admin, path).await.json()
    }

    /// What the gateway says of a model on its status page.
    pub(crate) async fn shown(&self, model: &str) -> Value {
        let page = self.page("/debug/models").await;
        let models = page["models"].as_array().cloned().unwrap_or_default();
        models.into_iter().find(|shown| shown["model"] == model).unwrap_or_default()
    }

    /// Waits until the gateway has seen of a model what `wanted` accepts.
    pub(crate) async fn sees(&self, model: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually("the gateway has seen it", async || {
            Some(self.shown(model).await).filter(&wanted)
        })
        .await
    }

    /// Waits until the model is offered.
    pub(crate) async fn knows(&self, model: &str) {
        self.sees(model, Value::is_object).await;
    }

    /// Waits until so many requests wait for the model.
    pub(crate) async fn waits(&self, model: &str, count: usize) {
        self.sees(model, |shown| shown["waiting"] == count).await;
    }
}

async fn asked(address: SocketAddr, model: String) -> Answer {
    ask(address, &model).await
}

/// Asks a model over a connection of its own, and waits for the whole answer.
pub(crate) async fn ask(address: SocketAddr, model: &str) -> Answer {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "Hello" }] });
    let mut client = Client::connect(address).await.unwrap();
    client.post(CHAT, body.to_string().as_bytes()).await.unwrap();
    client.answer().await.unwrap()
}

/// The same, answered as a stream.
pub(crate) async fn ask_for_a_stream(address: SocketAddr, model: &str) -> Answer {
    let message = json!({ "role": "user", "content": "Hello" });
    let body = json!({ "model": model, "stream": true, "messages": [message] });
    let mut client = Client::connect(address).await.unwrap();
    client.post(CHAT, body.to_string().as_bytes()).await.unwrap();
    client.answer().await.unwrap()
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    let mut client = Client::connect(address).await.unwrap();
    let request = flexinfer_testkit::client::request("GET", path, &[], b"");
    client.send(&request).await.unwrap();
    client.answer().await.unwrap()
}

pub(crate) fn address_of(engine: &Running) -> SocketAddr {
    engine.addr
}

/// An address of this machine that is not the loopback's, which the API server refuses. Nothing is sent:
/// the system only looks up which of its addresses it would send from.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // A pod's address, if there were one.
    socket.connect("10.88.0.2:9").unwrap();
    socket.local_addr().unwrap().ip()
}

/// A program of this workspace, which `cargo xtask e2e` has built beside the tests.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join(name)
}

/// The code of a refusal.
pub(crate) fn code(answer: &Answer) -> String {
    answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
}
