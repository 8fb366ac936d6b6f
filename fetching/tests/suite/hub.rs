//! A hub on loopback: the list of files, `resolve` with a redirect to storage on another port,
//! ranges, entity tags, and one fault after another. Everything that it was asked is written down.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode, Uri, header};
use axum::routing::get;
use futures::stream::{self, StreamExt as _};
use tokio::net::TcpListener;

/// What goes wrong with one answer that has content.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The connection breaks after this many bytes of the body.
    Cut(usize),
    /// Nothing more comes after this many bytes of the body; the connection stays.
    Stall(usize),
    /// This status instead, with `Retry-After: 0`.
    Status(u16),
    /// One byte of the body is another.
    Flip,
    /// The whole file, whatever part was asked for.
    IgnoreRange,
    /// No byte at all, as if that were the file.
    Empty,
    /// More bytes than the file has, without a length.
    TooLong,
    /// A page instead of the file.
    Page,
    /// A part under another entity tag, without looking at the condition.
    OtherTag,
    /// A redirect there instead of to the storage.
    Redirect(String),
}

#[derive(Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) content: Bytes,
    /// In large-file storage: known by its SHA-256 and behind a redirect.
    pub(crate) large: bool,
    /// What the list says in place of the true size.
    pub(crate) listed_size: Option<u64>,
}

/// One request that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// `hub`, `registry`, `token` or `storage`.
    pub(crate) server: &'static str,
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) if_range: Option<String>,
    pub(crate) authorization: Option<String>,
}

#[derive(Default)]
struct Shared {
    files: Mutex<Vec<File>>,
    commit: Mutex<String>,
    faults: Mutex<VecDeque<Fault>>,
    always: Mutex<Option<Fault>>,
    needed_token: Mutex<Option<String>>,
    asked: Mutex<Vec<Asked>>,
    storage: OnceLock<SocketAddr>,
}

pub(crate) struct FakeHub {
    pub(crate) endpoint: String,
    pub(crate) storage: String,
    shared: Arc<Shared>,
    servers: Vec<tokio::task::JoinHandle<()>>,
}

impl FakeHub {
    pub(crate) async fn start(files: Vec<File>) -> Self {
        let shared = Arc::new(Shared::default());
        *shared.files.lock().unwrap() = files;
        *shared.commit.lock().unwrap() = "a".repeat(40);
        let hub = Router::new()
            .route("/api/models/{organisation}/{name}/revision/{revision}", get(list))
            .route("/{organisation}/{name}/resolve/{revision}/{*path}", get(resolve))
            .route("/elsewhere/{*path}", get(elsewhere));
        let storage = Router::new().route("/blob/{*path}", get(blob));
        let (endpoint, first) = serve(hub.with_state(shared.clone())).await;
        let (at, second) = serve(storage.with_state(shared.clone())).await;
        shared.storage.set(at).unwrap();
        Self {
            endpoint: format!("http://{endpoint}"),
            storage: format!("http://{at}"),
            shared,
            servers: vec![first, second],
        }
    }

    /// The next answers with content go wrong like this, one after another.
    pub(crate) fn fail_with(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.faults.lock().unwrap().extend(faults);
    }

    /// Every answer with content goes wrong like this, once no other fault is left.
    pub(crate) fn always_fail_with(&self, fault: Option<Fault>) {
        *self.shared.always.lock().unwrap() = fault;
    }

    pub(crate) fn need_token(&self, token: &str) {
        *self.shared.needed_token.lock().unwrap() = Some(format!("Bearer {token}"));
    }

    /// The branch moves: another commit with other files.
    pub(crate) fn commit(&self, commit: &str, files: Vec<File>) {
        commit.clone_into(&mut self.shared.commit.lock().unwrap());
        *self.shared.files.lock().unwrap() = files;
    }

    /// What was asked since this was last called.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.asked.lock().unwrap())
    }

    /// The requests for content since the last call: path and range.
    pub(crate) fn contents_asked(&self) -> Vec<(String, Option<String>)> {
        let asked = self.asked().into_iter();
        let contents =
            asked.filter(|asked| asked.server == "storage" || asked.path.contains("/resolve/"));
        contents
            .map(|asked| {
                let name = asked.path.rsplit('/').next().unwrap_or_default().to_owned();
                (name, asked.range)
            })
            .collect()
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        for server in &self.servers {
            server.abort();
        }
    }
}

/// What a header says.
pub(crate) fn text(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    headers.get(name).map(|value| value.to_str().unwrap().to_owned())
}

pub(crate) async fn serve(router: Router) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }))
}

impl Shared {
    fn note(&self, server: &'static str, uri: &Uri, headers: &HeaderMap) {
        self.asked.lock().unwrap().push(Asked {
            server,
            path: uri.path().to_owned(),
            range: text(headers, &header::RANGE),
            if_range: text(headers, &header::IF_RANGE),
            authorization: text(headers, &header::AUTHORIZATION),
        });
    }

    fn refuses(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        let needed = self.needed_token.lock().unwrap().clone()?;
        let given = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap());
        let gated = Response::builder().status(401).header("x-error-code", "GatedRepo");
        (given != Some(&needed)).then(|| gated.body(Body::empty()).unwrap())
    }

    fn fault(&self) -> Option<Fault> {
        let next = self.faults.lock().unwrap().pop_front();
        next.or_else(|| self.always.lock().unwrap().clone())
    }

    fn file(&self, path: &str) -> Option<File> {
        self.files.lock().unwrap().iter().find(|file| file.path == path).cloned()
    }
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Path((_, _, revision)): Path<(String, String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    shared.note("hub", &uri, &headers);
    if let Some(refusal) = shared.refuses(&headers) {
        return refusal;
    }
    let commit = shared.commit.lock().unwrap().clone();
    if revision.len() == 40 && revision != commit {
        let gone = Response::builder().status(404).header("x-error-code", "RevisionNotFound");
        return gone.body(Body::empty()).unwrap();
    }
    let files = shared.files.lock().unwrap();
    let siblings = files.iter().map(File::listed).collect::<Vec<_>>();
    let answer = serde_json::json!({"sha": commit, "siblings": siblings});
    Response::new(answer.to_string().into())
}

async fn resolve(
    State(shared): State<Arc<Shared>>,
    Path((_, _, _, path)): Path<(String, String, String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    shared.note("hub", &uri, &headers);
    if let Some(refusal) = shared.refuses(&headers) {
        return refusal;
    }
    let Some(file) = shared.file(&path) else { return status(404) };
    if !file.large {
        return content(&file, &headers, shared.fault().as_ref());
    }
    let redirect = match shared.faults.lock().unwrap().front() {
        Some(Fault::Redirect(target)) => Some(target.clone()),
        _ => None,
    };
    if redirect.is_some() {
        shared.faults.lock().unwrap().pop_front();
    }
    let storage = shared.storage.get().unwrap();
    let target = redirect.unwrap_or_else(|| format!("http://{storage}/blob/{path}?sig=1"));
    Response::builder().status(302).header("location", target).body(Body::empty()).unwrap()
}

async fn elsewhere(
    State(shared): State<Arc<Shared>>,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    shared.note("hub", &uri, &headers);
    shared.file(&path).map_or_else(|| status(404), |file| content(&file, &headers, None))
}

async fn blob(
    State(shared): State<Arc<Shared>>,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    shared.note("storage", &uri, &headers);
    let fault = shared.fault();
    shared.file(&path).map_or_else(|| status(404), |file| content(&file, &headers, fault.as_ref()))
}

pub(crate) fn status(code: u16) -> Response<Body> {
    Response::builder().status(code).body(Body::empty()).unwrap()
}

/// A file or the part of it that is asked for, as the fault has it.
pub(crate) fn content(file: &File, headers: &HeaderMap, fault: Option<&Fault>) -> Response<Body> {
    match fault {
        Some(Fault::Status(code)) => {
            let answer = Response::builder().status(*code).header("retry-after", "0");
            return answer.body(Body::empty()).unwrap();
        }
        Some(Fault::Page) => return Response::new("<html>".into()),
        Some(Fault::Empty) => return Response::new(Body::empty()),
        _ => {}
    }
    let length = file.content.len();
    let own_tag = format!("\"{}\"", file.digest());
    let mut builder = Response::builder();
    let condition = headers.get(header::IF_RANGE).map(|value| value.to_str().unwrap());
    let same = condition.is_none_or(|tag| tag == own_tag);
    let start = headers.get(header::RANGE).map(|value| {
        let range = value.to_str().unwrap().strip_prefix("bytes=").unwrap();
        range.split_once('-').unwrap().0.parse::<usize>().unwrap()
    });
    let (start, tag) = match (fault, start) {
        (Some(Fault::IgnoreRange), _) | (_, None) => (None, own_tag),
        (Some(Fault::OtherTag), start) => (start, "\"another\"".to_owned()),
        (_, start) if same => (start, own_tag),
        _ => (None, own_tag),
    };
    if let Some(start) = start {
        if start >= length {
            let answer = Response::builder().status(416);
            let answer = answer.header("content-range", format!("bytes */{length}"));
            return answer.body(Body::empty()).unwrap();
        }
        builder = builder.status(StatusCode::PARTIAL_CONTENT);
        let range = format!("bytes {start}-{}/{length}", length - 1);
        builder = builder.header(header::CONTENT_RANGE, range);
    }
    let mut body = file.content.slice(start.unwrap_or(0)..).to_vec();
    if matches!(fault, Some(Fault::Flip)) {
        let middle = body.len() / 2;
        body[middle] ^= 1;
    }
    builder = builder.header(header::ETAG, tag);
    if matches!(fault, Some(Fault::TooLong)) {
        body.extend_from_slice(b"more");
        let whole = stream::iter([Ok::<_, std::io::Error>(Bytes::from(body))]);
        return builder.body(Body::from_stream(whole)).unwrap();
    }
    builder = builder.header(header::CONTENT_LENGTH, body.len());
    builder.body(broken(Bytes::from(body), fault)).unwrap()
}

fn broken(body: Bytes, fault: Option<&Fault>) -> Body {
    match fault {
        Some(Fault::Cut(at)) => {
            let cut = std::io::Error::other("cut");
            let part = body.slice(..*at);
            // The part must have left before the connection breaks.
            let then_cut = stream::once(async {
                tokio::task::yield_now().await;
                Err(cut)
            });
            Body::from_stream(stream::iter([Ok(part)]).chain(then_cut))
        }
        Some(Fault::Stall(at)) => {
            let part = Ok::<_, std::io::Error>(body.slice(..*at));
            Body::from_stream(stream::iter([part]).chain(stream::pending()))
        }
        _ => Body::from(body),
    }
}
