//! `GET /weights/<namespace>/<model>/<file>`: parts of whole files, each with its digest. Whoever asks says by
//! `If-Match` which state of the file it wants, so that two revisions never mix.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flexinfer_core::loading::peers::{Asked, part, tag};
use flexinfer_core::loading::{Modified, Pace};
use flexinfer_core::moment::Moment;
use futures::stream;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

use super::Arguments;
use crate::{inside, listening};

/// One read.
const CHUNK: u64 = 256 << 10;

/// Parts that leave at once. More would only be slower each; who is turned away reads its volume.
const AT_ONCE: usize = 4;

struct Held {
    folder: PathBuf,
    pace: Mutex<Pace>,
    begun: Instant,
    slots: Arc<Semaphore>,
}

/// Serves the weights below `folder` until it is aborted.
pub(crate) async fn serve(
    folder: PathBuf,
    arguments: &Arguments,
) -> anyhow::Result<JoinHandle<()>> {
    let port = arguments.port;
    let listener = listening::everywhere(port).await.with_context(|| {
        format!("port {port} cannot be listened on; choose another with --weights-port")
    })?;
    let address = listener.local_addr().context("the weights have no address")?;
    tracing::info!(weights = %address, "other nodes can get weights");
    let held = Held {
        folder,
        pace: Mutex::new(Pace::new(arguments.rate)),
        begun: Instant::now(),
        slots: Arc::new(Semaphore::new(AT_ONCE)),
    };
    let routes = Router::new().route("/weights/{*path}", get(give)).with_state(Arc::new(held));
    Ok(tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(error = %error, "weights are not handed on any more");
        }
    }))
}

async fn give(
    State(held): State<Arc<Held>>,
    method: Method,
    Path(path): Path<String>,
    head: HeaderMap,
) -> Response {
    let Some(asked) = Asked::of(&path) else { return StatusCode::NOT_FOUND.into_response() };
    let folder = held.folder.clone();
    let opened = spawn_blocking(move || open(&folder, &asked)).await;
    let Ok(Ok((file, length, tag))) = opened else { return StatusCode::NOT_FOUND.into_response() };
    let text = |name| head.get(name).and_then(|value| value.to_str().ok());
    if text(header::IF_MATCH).is_some_and(|wanted| wanted != tag) {
        return StatusCode::PRECONDITION_FAILED.into_response();
    }
    let common = [(header::ETAG, tag), (header::ACCEPT_RANGES, "bytes".to_owned())];
    if method == Method::HEAD {
        return (common, [(header::CONTENT_LENGTH, length)]).into_response();
    }
    let Some(range) = text(header::RANGE).and_then(|range| part(range, length)) else {
        let whole = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
        return (StatusCode::RANGE_NOT_SATISFIABLE, whole).into_response();
    };
    let Ok(slot) = Arc::clone(&held.slots).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response();
    };
    let (hashed, of) = (Arc::clone(&file), range.clone());
    let Ok(Ok(digest)) = spawn_blocking(move || digest(&hashed, of)).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let about = [
        (header::CONTENT_RANGE, format!("bytes {}-{}/{length}", range.start, range.end - 1)),
        (header::CONTENT_LENGTH, (range.end - range.start).to_string()),
    ];
    let digest = [("content-digest", format!("sha-256=:{digest}:"))];
    let leaving = Leaving { held, file, range, _slot: slot };
    let body = Body::from_stream(stream::unfold(leaving, Leaving::next));
    (StatusCode::PARTIAL_CONTENT, common, about, digest, body).into_response()
}

/// Opens a whole, regular file that lies in the folder. Whoever may write there, an engine of the model, could put a
/// link there to what only we may read, at any moment: none is followed.
fn open(folder: &FilePath, asked: &Asked) -> io::Result<(Arc<File>, u64, String)> {
    let model = inside::folder(&inside::top(folder)?, FilePath::new(asked.model.as_str()))?;
    let (way, name) = inside::split(&asked.file);
    let file = inside::file(&inside::folder(&model, way)?, name)?;
    let metadata = file.metadata()?;
    let modified = Modified { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() };
    let tag = tag(metadata.len(), modified);
    Ok((Arc::new(file), metadata.len(), tag))
}

/// The SHA-256 of a part of a file, in base64.
fn digest(file: &File, range: Range<u64>) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut at = range.start;
    while at < range.end {
        let read = read(file, at..range.end)?;
        digest.update(&read);
        at += read.len() as u64;
    }
    Ok(BASE64_STANDARD.encode(digest.finalize()))
}

/// The beginning of `range`, one read of it.
fn read(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let length = (range.end - range.start).min(CHUNK);
    let mut chunk = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut chunk, range.start)?;
    Ok(chunk)
}

/// A part on its way out.
struct Leaving {
    held: Arc<Held>,
    file: Arc<File>,
    range: Range<u64>,
    _slot: OwnedSemaphorePermit,
}

impl Leaving {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.range.is_empty() {
            return None;
        }
        let (file, range) = (Arc::clone(&self.file), self.range.clone());
        let chunk = match spawn_blocking(move || read(&file, range)).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Some((Err(error), self.ended())),
            Err(error) => return Some((Err(io::Error::other(error)), self.ended())),
        };
        self.range.start += chunk.len() as u64;
        let now = Moment::after_origin(self.held.begun.elapsed());
        let wait = self.held.pace.lock().wait(chunk.len() as u64, now);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Some((Ok(Bytes::from(chunk)), self))
    }

    fn ended(mut self) -> Self {
        self.range.start = self.range.end;
        self
    }
}
