//! What the engine was asked, for tests to read: every request with its body and how it ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// Requests kept; older ones are forgotten.
const KEPT: usize = 8_192;
/// Bytes of bodies kept; beyond it the oldest requests are forgotten too.
const KEPT_BYTES: usize = 512 << 20;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its answer is still to come or on its way.
    Open,
    /// Its answer was handed over whole.
    Finished,
    /// The client left, or the answer was cut by a fault, before the end.
    BrokenOff,
}

/// One request as the engine saw it.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Counts up from 0 over the life of the engine.
    pub number: u64,
    /// Counts connections from 0: equal numbers came by the same connection.
    pub connection: u64,
    /// How long the model had been loaded when it came; nothing while it was loading.
    pub since_loaded: Option<Duration>,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body, empty until it was read to its end.
    pub body: Bytes,
    /// True once the body was read to its end.
    pub body_complete: bool,
    /// Status of the answer, once there is one.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
}

impl RecordedRequest {
    /// SHA-256 of the body in hexadecimal.
    pub fn body_sha256(&self) -> String {
        hexadecimal(&Sha256::digest(&self.body))
    }

    fn to_json(&self) -> Value {
        let headers: Vec<Value> = self
            .headers
            .iter()
            .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
            .collect();
        json!({
            "number": self.number,
            "connection": self.connection,
            "since_loaded_us": self.since_loaded.map(|since| since.as_micros()),
            "method": self.method.as_str(),
            "path": self.path,
            "headers": headers,
            "body_bytes": self.body.len(),
            "body_sha256": self.body_sha256(),
            "body_complete": self.body_complete,
            "status": self.status,
            "outcome": format!("{:?}", self.outcome),
        })
    }
}

/// The requests of one engine, oldest first. Nothing is kept when it is switched off.
#[derive(Debug)]
pub(crate) struct RequestLog {
    on: bool,
    next: AtomicU64,
    loaded: OnceLock<Instant>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    requests: VecDeque<RecordedRequest>,
    body_bytes: usize,
}

impl Kept {
    fn forget_beyond_bounds(&mut self) {
        while self.requests.len() > KEPT
            || (self.body_bytes > KEPT_BYTES && self.requests.len() > 1)
        {
            let Some(oldest) = self.requests.pop_front() else { break };
            self.body_bytes -= oldest.body.len();
        }
    }
}

impl RequestLog {
    pub(crate) fn new(on: bool) -> Self {
        Self { on, next: AtomicU64::new(0), loaded: OnceLock::new(), kept: Mutex::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Notes that the model is loaded.
    pub(crate) fn loaded(&self) {
        self.loaded.get_or_init(Instant::now);
    }

    /// Notes that a request began; what is returned notes how it ends, by drop at the latest.
    pub(crate) fn begin(self: &Arc<Self>, connection: u64, head: &http::request::Parts) -> Entry {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        if self.on {
            let mut kept = self.kept.lock();
            kept.requests.push_back(RecordedRequest {
                number,
                connection,
                since_loaded: self.loaded.get().map(Instant::elapsed),
                method: head.method.clone(),
                path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
                headers: head.headers.clone(),
                body: Bytes::new(),
                body_complete: false,
                status: None,
                outcome: Outcome::Open,
            });
            kept.forget_beyond_bounds();
        }
        Entry { log: Arc::clone(self), number, ended: false }
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.kept.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        Value::Array(self.requests().iter().map(RecordedRequest::to_json).collect())
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut RecordedRequest)) {
        if !self.on {
            return;
        }
        // Newest last: a request under way is near the end.
        let mut kept = self.kept.lock();
        let kept = &mut *kept;
        if let Some(entry) = kept.requests.iter_mut().rev().find(|entry| entry.number == number) {
            let before = entry.body.len();
            change(entry);
            kept.body_bytes += entry.body.len() - before;
            kept.forget_beyond_bounds();
        }
    }
}

/// The open record of one request.
#[derive(Debug)]
pub(crate) struct Entry {
    log: Arc<RequestLog>,
    number: u64,
    ended: bool,
}

impl Entry {
    pub(crate) fn body_read(&self, body: &Bytes) {
        self.log.change(self.number, |entry| {
            entry.body = body.clone();
            entry.body_complete = true;
        });
    }

    pub(crate) fn answered(&self, status: http::StatusCode) {
        self.log.change(self.number, |entry| entry.status = Some(status.as_u16()));
    }

    pub(crate) fn finished(&mut self) {
        self.ended = true;
        self.log.change(self.number, |entry| entry.outcome = Outcome::Finished);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.ended {
            self.log.change(self.number, |entry| entry.outcome = Outcome::BrokenOff);
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> http::request::Parts {
        http::Request::post("/v1/chat/completions").body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_that_is_dropped_was_broken_off() {
        let log = Arc::new(RequestLog::new(true));
        let mut kept = log.begin(0, &head());
        kept.body_read(&Bytes::from_static(b"abc"));
        kept.finished();
        drop(kept);
        drop(log.begin(0, &head()));
        let requests = log.requests();
        assert_eq!(requests[0].outcome, Outcome::Finished);
        assert!(requests[0].body_sha256().starts_with("ba7816bf"));
        assert_eq!(requests[1].outcome, Outcome::BrokenOff);
        assert!(!requests[1].body_complete);
    }

    #[test]
    fn bodies_are_kept_up_to_a_bound() {
        let log = Arc::new(RequestLog::new(true));
        let body = Bytes::from(vec![0; KEPT_BYTES / 2]);
        for _ in 0..4 {
            log.begin(0, &head()).body_read(&body);
        }
        let numbers: Vec<u64> = log.requests().iter().map(|request| request.number).collect();
        assert_eq!(numbers, [2, 3]);
    }

    #[test]
    fn the_oldest_requests_are_forgotten() {
        let log = Arc::new(RequestLog::new(true));
        for _ in 0..KEPT + 3 {
            log.begin(0, &head()).finished();
        }
        assert_eq!(log.requests().len(), KEPT);
        assert_eq!(log.requests()[0].number, 3);
    }
}
