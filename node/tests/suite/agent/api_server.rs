//! Servers for one test: one that answers as it is told, and on it as much of Kubernetes' API as the agent
//! uses, over one node.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use flexinfer_testkit::api_server::refusal;
use serde_json::{Value, json};

/// What a request asks.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A status, a header that may be there, and a body.
pub(crate) type Answered = (u16, Option<(&'static str, &'static str)>, String);

/// A server on loopback, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn answering(
        answer: impl Fn(&Asked) -> Answered + Clone + Send + Sync + 'static,
    ) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().fallback(move |request: Request<Body>| {
            let answer = answer.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                let path = parts.uri.path_and_query().unwrap().to_string();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (status, header, body) =
                    answer(&Asked { method: parts.method, path, headers: parts.headers, body });
                let mut response =
                    Response::builder().status(StatusCode::from_u16(status).unwrap());
                if let Some((name, value)) = header {
                    response = response.header(name, value);
                }
                response.body(Body::from(body)).unwrap()
            }
        });
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[derive(Default)]
struct State {
    node: Value,
    pods: Vec<Value>,
    patches: Vec<Value>,
    events: Vec<Value>,
    /// What a watch of the pods is told, each once.
    changes: Vec<Value>,
    /// How often an event about the pod of this name is still refused.
    refused: HashMap<String, usize>,
}

/// The API server of a cluster with one node, `node-1`.
pub(super) struct ApiServer {
    server: Server,
    state: Arc<Mutex<State>>,
    folder: tempfile::TempDir,
}

impl ApiServer {
    pub(super) fn new() -> Self {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "resourceVersion": "1"},
            "spec": {}, "status": {"nodeInfo": machine()}});
        let state = Arc::new(Mutex::new(State { node, ..State::default() }));
        let shared = Arc::clone(&state);
        let server = Server::answering(move |asked| {
            let mut state = shared.lock().unwrap();
            let watch = asked.path.contains("watch=true");
            let (status, body) = if watch {
                // It ends at once, as each does sooner or later.
                let changes = std::mem::take(&mut state.changes);
                let lines: Vec<String> = changes.iter().map(Value::to_string).collect();
                (200, lines.join("\n"))
            } else {
                let (status, body) = answer(&mut state, asked);
                (status, body.to_string())
            };
            (status, Some(("content-type", "application/json")), body)
        });
        Self { server, state, folder: tempfile::tempdir().unwrap() }
    }

    /// Changes the node, as somebody else would.
    pub(super) fn with(self, change: &Value) -> Self {
        self.change(change);
        self
    }

    pub(super) fn change(&self, change: &Value) {
        merge(&mut self.state.lock().unwrap().node, change);
    }

    /// An engine's pod on the node.
    pub(super) fn with_pod(self, backend: &str, port: u16) -> Self {
        self.with_pod_called("engine", backend, port)
    }

    pub(super) fn with_pod_called(self, name: &str, backend: &str, port: u16) -> Self {
        self.state.lock().unwrap().pods.push(json!({
            "metadata": {"name": name, "namespace": "models", "uid": format!("uid of {name}"), "labels": {"flexinfer.ai/backend": backend, "app.kubernetes.io/managed-by": "flexinfer"}},
            "spec": {"containers": [{"name": "engine", "ports": [{"containerPort": port}]}]},
            "status": {"phase": "Running", "podIP": "127.0.0.1"},
        }));
        self
    }

    /// A file that leads to this server.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        let file = self.folder.path().join("kubeconfig");
        fs::write(&file, kubeconfig(&self.server.url())).unwrap();
        file
    }

    /// A pod with a GPU is gone from the node.
    pub(super) fn gone(&self, pod: &str) {
        let asked = json!({"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}});
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "models"},
            "spec": {"nodeName": "node-1", "containers": [{"name": "engine", "resources": asked}]},
        });
        self.state.lock().unwrap().changes.push(json!({"type": "DELETED", "object": object}));
    }

    /// Refuses the first `times` events about the pod of this name.
    pub(super) fn refusing_events_of(self, pod: &str, times: usize) -> Self {
        self.state.lock().unwrap().refused.insert(pod.to_owned(), times);
        self
    }

    pub(super) fn node(&self) -> Value {
        self.state.lock().unwrap().node.clone()
    }

    pub(super) fn patches(&self) -> Vec<Value> {
        self.state.lock().unwrap().patches.clone()
    }

    pub(super) fn events(&self) -> Vec<Value> {
        self.state.lock().unwrap().events.clone()
    }

    /// Waits until the node is so.
    pub(super) fn wait_until(&self, state: &str, holds: impl Fn(&Value) -> bool) {
        let begun = Instant::now();
        while !holds(&self.node()) {
            assert!(begun.elapsed() < Duration::from_secs(30), "not {state}: {:#}", self.node());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What leads a client to the API server at `url`.
pub(crate) fn kubeconfig(url: &str) -> String {
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
    config.to_string()
}

fn machine() -> Value {
    let names = [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!("boot-1")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn answer(state: &mut State, asked: &Asked) -> (u16, Value) {
    let path = asked.path.split('?').next().unwrap();
    match (asked.method.as_str(), path) {
        ("GET", "/api/v1/nodes/node-1") => (200, state.node.clone()),
        ("PATCH", "/api/v1/nodes/node-1") => {
            let version = asked.body.pointer("/metadata/resourceVersion");
            if version.is_some_and(|version| *version != state.node["metadata"]["resourceVersion"])
            {
                return refusal(409, "Conflict", "another version is there");
            }
            state.patches.push(asked.body.clone());
            merge(&mut state.node, &asked.body);
            state.node["metadata"]["resourceVersion"] =
                json!((state.patches.len() + 1).to_string());
            (200, state.node.clone())
        }
        ("GET", "/api/v1/pods") => {
            assert!(asked.path.contains("spec.nodeName%3Dnode-1"), "{}", asked.path);
            (
                200,
                json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": state.pods}),
            )
        }
        ("POST", "/api/v1/namespaces/models/events") => {
            let pod = asked.body["involvedObject"]["name"].as_str().unwrap_or_default();
            if let Some(left @ 1..) = state.refused.get_mut(pod) {
                *left -= 1;
                return refusal(403, "Forbidden", "no events of this pod");
            }
            state.events.push(asked.body.clone());
            (201, asked.body.clone())
        }
        _ => refusal(404, "NotFound", "no such object"),
    }
}

/// RFC 7396.
pub(crate) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, change) in changes {
        if change.is_null() {
            into.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut into[name], change);
        }
    }
}
