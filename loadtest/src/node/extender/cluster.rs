//! As much of an API server as the extender asks for: lists of nodes, pods and ConfigMaps, and watches on
//! which nothing happens.

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A cluster of so many nodes, served as long as its runtime lives.
pub(super) struct Cluster {
    folder: tempfile::TempDir,
}

/// The name of a node, as clouds make them.
pub(super) fn name(number: usize) -> String {
    format!(
        "ip-10-{}-{}-{}.eu-west-1.compute.internal",
        number >> 16,
        (number >> 8) & 255,
        number & 255
    )
}

impl Cluster {
    pub(super) async fn start(nodes: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{ "name": "bench", "cluster": { "server": format!("http://{}", listener.local_addr()?) } }],
            "users": [{ "name": "bench", "user": {} }],
            "contexts": [{ "name": "bench", "context": { "cluster": "bench", "user": "bench" } }],
        });
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string())?;
        let nodes =
            Bytes::from(list("Node", &(0..nodes).map(node).collect::<Vec<_>>()).to_string());
        tokio::spawn(serve(listener, Arc::new(nodes)));
        Ok(Self { folder })
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

async fn serve(listener: TcpListener, nodes: Arc<Bytes>) {
    while let Ok((socket, _)) = listener.accept().await {
        let nodes = Arc::clone(&nodes);
        let answer = service_fn(move |request| std::future::ready(answer(&request, &nodes)));
        let connection = hyper::server::conn::http1::Builder::new();
        let connection = connection.serve_connection(TokioIo::new(socket), answer);
        tokio::spawn(async { drop(connection.await) });
    }
}

fn answer(
    request: &Request<Incoming>,
    nodes: &Bytes,
) -> Result<Response<BoxBody<Bytes, Infallible>>, http::Error> {
    let query = request.uri().query().unwrap_or_default();
    let path = request.uri().path();
    let body = if query.contains("watch=") {
        Silence.boxed()
    } else if path.ends_with("/nodes") {
        Full::new(nodes.clone()).boxed()
    } else {
        let kind = if path.ends_with("/pods") { "Pod" } else { "ConfigMap" };
        Full::from(list(kind, &[]).to_string()).boxed()
    };
    Response::builder().header("content-type", "application/json").body(body)
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": format!("{kind}List"), "metadata": { "resourceVersion": "1" }, "items": items })
}

/// Nodes of four kinds, each as busy as its number says.
fn node(number: usize) -> Value {
    let architecture = ["sm_80", "sm_86", "sm_89", "sm_90"].get(number % 4);
    let free = 10_000 + number % 97 * 140;
    json!({
        "metadata": {
            "name": name(number),
            "labels": {
                "flexinfer.ai/gpu.vendor": "NVIDIA", "flexinfer.ai/gpu.arch": architecture,
                "flexinfer.ai/gpu.vram": "24Gi", "flexinfer.ai/gpu.count": "2", "flexinfer.ai/gpu.int4": "true",
            },
            "annotations": {
                "flexinfer.ai/gpu-free-memory": (2 * free).to_string(),
                "flexinfer.ai/gpu-free-memory.each": format!("{free},{free}"),
                "flexinfer.ai/gpu-measured-at": "2026-01-02T03:04:05Z",
                "flexinfer.ai/gpu.util": format!("{}.00", number % 100),
                "flexinfer.ai/kv-cache-usage": format!("0.{:02}", number % 90),
                "flexinfer.ai/gpu-health": "good",
            },
        },
        "spec": {},
        "status": {},
    })
}

/// A body that neither says anything nor ends.
struct Silence;

impl Body for Silence {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
