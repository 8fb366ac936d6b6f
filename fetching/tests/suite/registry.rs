//! A registry on loopback: manifests by tag and digest, blobs behind a redirect to storage on another port, a
//! service for tokens, and one fault after another. Everything that it was asked is written down.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, Uri, header};
use axum::routing::get;
use serde_json::{Value, json};

use crate::hub::{Asked, Fault, File, content, serve, status, text};
use crate::world::sha256;

/// `me:secret`, as it is sent.
pub(crate) const LOGIN: &str = "Basic bWU6c2VjcmV0";

#[derive(Default)]
struct Shared {
    files: Mutex<Vec<File>>,
    manifest: Mutex<Vec<u8>>,
    faults: Mutex<VecDeque<Fault>>,
    asked: Mutex<Vec<Asked>>,
    /// Whether anybody may pull, or only who has a token for the login.
    closed: Mutex<bool>,
    /// How often each token is taken.
    token_life: Mutex<usize>,
    uses: Mutex<usize>,
    addresses: OnceLock<(SocketAddr, SocketAddr)>,
}

/// The registry, which holds `org/name:v1`.
pub(crate) struct FakeRegistry {
    pub(crate) host: String,
    shared: Arc<Shared>,
    servers: Vec<tokio::task::JoinHandle<()>>,
}

impl FakeRegistry {
    pub(crate) async fn start(files: Vec<File>) -> Self {
        let shared = Arc::new(Shared { token_life: Mutex::new(usize::MAX), ..Shared::default() });
        let layers = files.iter().map(layer).collect::<Vec<_>>();
        *shared.manifest.lock().unwrap() = manifest(&layers.into());
        *shared.files.lock().unwrap() = files;
        let registry = Router::new()
            .route("/v2/org/name/manifests/{reference}", get(manifests))
            .route("/v2/org/name/blobs/{digest}", get(blobs))
            .route("/token", get(token));
        let storage = Router::new().route("/blob/{digest}", get(stored));
        let (at, first) = serve(registry.with_state(shared.clone())).await;
        let (behind, second) = serve(storage.with_state(shared.clone())).await;
        shared.addresses.set((at, behind)).unwrap();
        Self { host: at.to_string(), shared, servers: vec![first, second] }
    }

    /// The source of what it holds, by tag.
    pub(crate) fn source(&self) -> String {
        format!("oci://{}/org/name:v1", self.host)
    }

    /// The digest of its manifest.
    pub(crate) fn digest(&self) -> String {
        format!("sha256:{}", sha256(&self.shared.manifest.lock().unwrap()))
    }

    /// Its manifest is another from now on.
    pub(crate) fn answer_with(&self, layers: &Value) {
        *self.shared.manifest.lock().unwrap() = manifest(layers);
    }

    /// The next answers with content go wrong like this, one after another.
    pub(crate) fn fail_with(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.faults.lock().unwrap().extend(faults);
    }

    /// Only who has a token may pull, and each token is taken so often.
    pub(crate) fn close(&self, token_life: usize) {
        *self.shared.closed.lock().unwrap() = true;
        *self.shared.token_life.lock().unwrap() = token_life;
    }

    /// What was asked since this was last called.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.asked.lock().unwrap())
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        for server in &self.servers {
            server.abort();
        }
    }
}

/// The layer that a file is.
pub(crate) fn layer(file: &File) -> Value {
    json!({
        "mediaType": "application/vnd.oci.image.layer.v1.tar",
        "digest": format!("sha256:{}", file.digest()),
        "size": file.listed_size.unwrap_or(file.content.len() as u64),
        "annotations": { "org.opencontainers.image.title": file.path },
    })
}

fn manifest(layers: &Value) -> Vec<u8> {
    json!({ "schemaVersion": 2, "layers": layers }).to_string().into_bytes()
}

impl Shared {
    fn note(&self, server: &'static str, uri: &Uri, headers: &HeaderMap) {
        let asked = Asked {
            server,
            path: uri.path().to_owned(),
            range: text(headers, &header::RANGE),
            if_range: text(headers, &header::IF_RANGE),
            authorization: text(headers, &header::AUTHORIZATION),
        };
        self.asked.lock().unwrap().push(asked);
    }

    fn refuses(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        if !*self.closed.lock().unwrap() {
            return None;
        }
        let mut uses = self.uses.lock().unwrap();
        let shown = text(headers, &header::AUTHORIZATION);
        if shown.as_deref() == Some("Bearer token") && *uses < *self.token_life.lock().unwrap() {
            *uses += 1;
            return None;
        }
        let (at, _) = self.addresses.get().unwrap();
        let challenge = format!(r#"Bearer realm="http://{at}/token",service="fake""#);
        let refusal = Response::builder().status(401).header("www-authenticate", challenge);
        Some(refusal.body(Body::empty()).unwrap())
    }
}

async fn token(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response<Body> {
    shared.note("token", &uri, &headers);
    if uri.query() != Some("service=fake&scope=repository%3Aorg%2Fname%3Apull") {
        return status(400);
    }
    if text(&headers, &header::AUTHORIZATION).as_deref() != Some(LOGIN) {
        return status(401);
    }
    *shared.uses.lock().unwrap() = 0;
    Response::new(r#"{"token":"token"}"#.into())
}

async fn manifests(
    State(shared): State<Arc<Shared>>,
    Path(reference): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    shared.note("registry", &uri, &headers);
    if let Some(refusal) = shared.refuses(&headers) {
        return refusal;
    }
    let manifest = shared.manifest.lock().unwrap().clone();
    // A digest is answered with whatever there is: whether it fits is not for a registry to say.
    if reference == "v1" || reference.starts_with("sha256:") {
        Response::new(manifest.into())
    } else {
        status(404)
    }
}

async fn blobs(
    State(shared): State<Arc<Shared>>,
    Path(digest): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    shared.note("registry", &uri, &headers);
    if let Some(refusal) = shared.refuses(&headers) {
        return refusal;
    }
    let (_, storage) = shared.addresses.get().unwrap();
    let target = format!("http://{storage}/blob/{digest}?sig=1");
    Response::builder().status(307).header("location", target).body(Body::empty()).unwrap()
}

async fn stored(
    State(shared): State<Arc<Shared>>,
    Path(digest): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    shared.note("storage", &uri, &headers);
    let fault = shared.faults.lock().unwrap().pop_front();
    let files = shared.files.lock().unwrap().clone();
    let file = files.into_iter().find(|file| digest == format!("sha256:{}", file.digest()));
    file.map_or_else(|| status(404), |file| content(&file, &headers, fault.as_ref()))
}
