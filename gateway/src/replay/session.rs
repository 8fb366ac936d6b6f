//! The stand-in for the client's session: it hands out the held body, and passes everything else to the
//! real session, which it gives back when it is dropped.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use http::HeaderMap;
use pingora_core::protocols::Digest;
use pingora_core::protocols::http::custom::CustomMessageWrite;
use pingora_core::protocols::http::custom::server::Session as CustomSession;
use pingora_core::protocols::http::{HttpTask, ServerSession};
use pingora_core::protocols::l4::socket::SocketAddr;
use pingora_core::{BError, Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::time::Instant;

use super::{Home, Rest, Returned, Upload, nobody};

pub(super) struct ReplaySession {
    real: ServerSession,
    body: Body,
    /// What comes after it, from the client itself.
    rest: Option<Rest>,
    home: Home,
    watch: Option<Watch>,
}

/// Ends the exchange when the engine says nothing for too long.
struct Watch {
    limit: Duration,
    deadline: Instant,
    expired: Arc<AtomicBool>,
}

impl Watch {
    fn heard(&mut self) {
        self.deadline = Instant::now() + self.limit;
    }

    async fn expire(&self) -> BError {
        tokio::time::sleep_until(self.deadline).await;
        self.expired.store(true, Ordering::Relaxed);
        Error::explain(ErrorType::ReadTimedout, "the engine has fallen silent")
    }
}

/// How the body is handed to Pingora, which asks for a retry buffer once and then reads.
enum Body {
    /// As a retry buffer: one piece and nothing to read, the cheapest way through Pingora.
    Whole(Bytes),
    /// As a body that is still being read.
    Pieces(VecDeque<Bytes>),
}

impl ReplaySession {
    pub(super) fn new(real: ServerSession, body: &Upload, rest: Option<Rest>, home: Home) -> Self {
        let body = match body.pieces() {
            pieces if rest.is_some() => Body::Pieces(pieces.iter().cloned().collect()),
            [] => Body::Whole(Bytes::new()),
            [only] => Body::Whole(only.clone()),
            pieces => Body::Pieces(pieces.iter().cloned().collect()),
        };
        Self { real, body, rest, home, watch: None }
    }

    /// A session without a body that is still to come, which fails and sets `expired` when nothing was
    /// written to it for `limit`.
    pub(super) fn watching(
        real: ServerSession,
        limit: Duration,
        expired: Arc<AtomicBool>,
        home: Home,
    ) -> Self {
        let watch = Watch { limit, deadline: Instant::now() + limit, expired };
        Self { real, body: Body::Whole(Bytes::new()), rest: None, home, watch: Some(watch) }
    }

    fn next_piece(&mut self) -> Option<Bytes> {
        match &mut self.body {
            Body::Whole(_) => None,
            Body::Pieces(pieces) => pieces.pop_front(),
        }
    }
}

impl Drop for ReplaySession {
    fn drop(&mut self) {
        let session = mem::replace(&mut self.real, nobody());
        *self.home.lock() = Some(Returned { session, rest: self.rest.take() });
    }
}

#[async_trait]
impl CustomSession for ReplaySession {
    // The body: the reason why this exists.

    async fn read_body_bytes(&mut self) -> Result<Option<Bytes>> {
        if let Some(piece) = self.next_piece() {
            return Ok(Some(piece));
        }
        match self.rest.as_mut().filter(|rest| !rest.is_done()) {
            Some(rest) => rest.next(&mut self.real).await,
            None => Ok(None),
        }
    }

    async fn read_body_or_idle(&mut self, no_body_expected: bool) -> Result<Option<Bytes>> {
        // Nothing is awaited before the piece is out: dropping this future never loses one.
        if !no_body_expected && let Some(piece) = self.next_piece() {
            return Ok(Some(piece));
        }
        if !no_body_expected && let Some(rest) = self.rest.as_mut().filter(|rest| !rest.is_done()) {
            return rest.next(&mut self.real).await;
        }
        match &self.watch {
            None => self.real.read_body_or_idle(true).await,
            Some(watch) => tokio::select! {
                biased;
                read = self.real.read_body_or_idle(true) => read,
                error = watch.expire() => Err(error),
            },
        }
    }

    async fn drain_request_body(&mut self) -> Result<()> {
        self.body = Body::Whole(Bytes::new());
        match self.rest.take() {
            Some(_) => self.real.drain_request_body().await,
            None => Ok(()),
        }
    }

    fn is_body_done(&mut self) -> bool {
        let rest_done = self.rest.as_ref().is_none_or(Rest::is_done);
        match &self.body {
            Body::Whole(_) => rest_done,
            Body::Pieces(pieces) => pieces.is_empty() && rest_done,
        }
    }

    fn is_body_empty(&mut self) -> bool {
        match &self.body {
            Body::Whole(whole) => whole.is_empty(),
            Body::Pieces(_) => false,
        }
    }

    fn enable_retry_buffering(&mut self) {}

    fn retry_buffer_truncated(&self) -> bool {
        false
    }

    fn get_retry_buffer(&self) -> Option<Bytes> {
        match &self.body {
            Body::Whole(whole) if !whole.is_empty() => Some(whole.clone()),
            _ => None,
        }
    }

    // Everything else is the real session's.

    fn req_header(&self) -> &RequestHeader {
        self.real.req_header()
    }

    fn req_header_mut(&mut self) -> &mut RequestHeader {
        self.real.req_header_mut()
    }

    async fn write_response_header(&mut self, head: Box<ResponseHeader>, _end: bool) -> Result<()> {
        self.real.write_response_header(head).await
    }

    async fn write_response_header_ref(&mut self, head: &ResponseHeader, _end: bool) -> Result<()> {
        self.real.write_response_header_ref(head).await
    }

    async fn write_body(&mut self, data: Bytes, end: bool) -> Result<()> {
        self.real.write_response_body(data, end).await
    }

    async fn write_trailers(&mut self, trailers: HeaderMap) -> Result<()> {
        self.real.write_response_trailers(trailers).await
    }

    async fn response_duplex_vec(&mut self, tasks: Vec<HttpTask>) -> Result<bool> {
        let written = self.real.response_duplex_vec(tasks).await;
        if let Some(watch) = &mut self.watch {
            watch.heard();
        }
        written
    }

    fn proxy_tasks_enabled(&self) -> bool {
        self.real.supports_proxy_task_api()
    }

    fn set_proxy_tasks_enabled(&mut self, enabled: bool) {
        self.real.set_proxy_tasks_enabled(enabled);
    }

    fn send_proxy_task(&mut self, task: HttpTask) {
        self.real.send_downstream_proxy_task(task);
    }

    fn has_pending_proxy_tasks(&self) -> bool {
        self.real.has_pending_downstream_proxy_tasks()
    }

    async fn write_proxy_tasks(&mut self) -> Result<bool> {
        self.real.write_downstream_proxy_tasks().await
    }

    fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.real.set_read_timeout(timeout);
    }

    fn get_read_timeout(&self) -> Option<Duration> {
        self.real.get_read_timeout()
    }

    fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.real.set_write_timeout(timeout);
    }

    fn get_write_timeout(&self) -> Option<Duration> {
        self.real.get_write_timeout()
    }

    fn set_total_drain_timeout(&mut self, timeout: Option<Duration>) {
        self.real.set_total_drain_timeout(timeout);
    }

    fn get_total_drain_timeout(&self) -> Option<Duration> {
        self.real.get_total_drain_timeout()
    }

    fn request_summary(&self) -> String {
        self.real.request_summary()
    }

    fn response_written(&self) -> Option<&ResponseHeader> {
        self.real.response_written()
    }

    async fn shutdown(&mut self, _code: u32, _context: &str) {
        self.real.shutdown().await;
    }

    async fn finish(&mut self) -> Result<()> {
        self.real.finish_body().await
    }

    fn body_bytes_sent(&self) -> usize {
        self.real.body_bytes_sent()
    }

    fn body_bytes_read(&self) -> usize {
        self.real.body_bytes_read()
    }

    fn digest(&self) -> Option<&Digest> {
        self.real.digest()
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        self.real.digest_mut()
    }

    fn client_addr(&self) -> Option<&SocketAddr> {
        self.real.client_addr()
    }

    fn server_addr(&self) -> Option<&SocketAddr> {
        self.real.server_addr()
    }

    fn pseudo_raw_h1_request_header(&self) -> Bytes {
        self.real.to_h1_raw()
    }

    fn is_upgrade_req(&self) -> bool {
        self.real.is_upgrade_req()
    }

    fn was_upgraded(&self) -> bool {
        self.real.was_upgraded()
    }

    // Messages beside the body: a client that speaks plain HTTP has none.

    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_reader(
        &mut self,
    ) -> Option<Box<dyn Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>> {
        None
    }

    fn restore_custom_message_reader(
        &mut self,
        _reader: Box<dyn Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>,
    ) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        None
    }

    fn restore_custom_message_writer(
        &mut self,
        _writer: Box<dyn CustomMessageWrite>,
    ) -> Result<()> {
        Ok(())
    }
}
