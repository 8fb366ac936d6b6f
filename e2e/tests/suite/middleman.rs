//! A program's only way to the API server, where the test sees every request and says what becomes of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use flexinfer_testkit::{TempDir, tempdir};
use http::{Method, StatusCode, header};
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use crate::shared::World;

/// More than any object of a test.
const LARGEST: usize = 4 << 20;

/// One request on its way.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
}

impl Call {
    /// Whether it would change something.
    pub(crate) fn writes(&self) -> bool {
        self.method != Method::GET
    }

    /// What is asked for, without the namespace: `PATCH models/a/status`.
    pub(crate) fn act(&self) -> String {
        let mut parts = self.path.split("/namespaces/").nth(1).unwrap_or(&self.path).splitn(2, '/');
        let object = parts.nth(1).unwrap_or(&self.path);
        format!("{} {object}", self.method)
    }
}

/// What becomes of a request.
pub(crate) enum Treatment {
    Pass,
    /// The API server never hears of it, and there is no answer; this is told.
    Lost(Arc<Notify>),
    /// It is carried out, and there is no answer; this is told when it has been.
    Unanswered(Arc<Notify>),
    /// Answered in the API server's name, with this code and body.
    Answered((u16, Value)),
}

type Rule = Box<dyn FnMut(&Call) -> Treatment + Send>;

/// The relay, which acts with every right. Gone with this.
pub(crate) struct Middleman {
    desk: Arc<Desk>,
    folder: TempDir,
    _serving: AbortOnDropHandle<()>,
}

struct Desk {
    client: Client,
    rule: Mutex<Rule>,
    writing: Mutex<Writing>,
}

/// Writes that have come and are not answered yet.
#[derive(Default)]
struct Writing {
    now: usize,
    most: usize,
}

/// One of them, for as long as it lasts; a client that goes away ends it too.
struct OneWrite(Arc<Desk>);

impl OneWrite {
    fn begin(desk: &Arc<Desk>) -> Self {
        let mut writing = desk.writing.lock().unwrap();
        writing.now += 1;
        writing.most = writing.most.max(writing.now);
        Self(Arc::clone(desk))
    }
}

impl Drop for OneWrite {
    fn drop(&mut self) {
        self.0.writing.lock().unwrap().now -= 1;
    }
}

impl Middleman {
    /// Before the cluster of `world`. Everything passes at first.
    pub(crate) async fn before(world: &World) -> Self {
        let rule: Rule = Box::new(|_| Treatment::Pass);
        let desk = Arc::new(Desk {
            client: world.client.clone(),
            rule: Mutex::new(rule),
            writing: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(take).with_state(Arc::clone(&desk));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let folder = tempdir().unwrap();
        let name = "middleman";
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
            "clusters": [{ "name": name, "cluster": { "server": format!("http://{address}") } }],
            "users": [{ "name": name, "user": {} }],
        });
        std::fs::write(folder.path().join(name), kubeconfig.to_string()).unwrap();
        Self { desk, folder, _serving: AbortOnDropHandle::new(serving) }
    }

    /// The configuration by which a program comes this way.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        Path::join(self.folder.path(), "middleman")
    }

    /// The most writes that were under way at once so far.
    pub(crate) fn most_writes_at_once(&self) -> usize {
        self.desk.writing.lock().unwrap().most
    }

    /// From now on this says what becomes of requests.
    pub(crate) fn rule(&self, rule: impl FnMut(&Call) -> Treatment + Send + 'static) {
        *self.desk.rule.lock().unwrap() = Box::new(rule);
    }
}

async fn take(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let call = Call { method: request.method().clone(), path: request.uri().path().to_owned() };
    let _write = call.writes().then(|| OneWrite::begin(&desk));
    let treatment = (desk.rule.lock().unwrap())(&call);
    match treatment {
        Treatment::Pass => carried_out(&desk.client, request).await,
        Treatment::Lost(told) => {
            told.notify_one();
            std::future::pending().await
        }
        Treatment::Unanswered(told) => {
            carried_out(&desk.client, request).await;
            told.notify_one();
            std::future::pending().await
        }
        Treatment::Answered((code, status)) => answer(code, &status),
    }
}

async fn carried_out(client: &Client, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    for name in [header::HOST, header::CONNECTION, header::AUTHORIZATION] {
        parts.headers.remove(name);
    }
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match client.send(http::Request::from_parts(parts, body.into())).await {
        Ok(response) => {
            let (mut parts, body) = response.into_parts();
            parts.headers.remove(header::TRANSFER_ENCODING);
            Response::from_parts(parts, Body::new(body))
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

fn answer(code: u16, status: &Value) -> Response {
    let code = StatusCode::from_u16(code).unwrap();
    (code, [(header::CONTENT_TYPE, "application/json")], status.to_string()).into_response()
}
