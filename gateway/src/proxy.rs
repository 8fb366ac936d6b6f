//! The table of contents of the request path: which of Pingora's hooks runs which stage. Nothing is
//! decided here.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flexinfer_core::fleet::Named;
use flexinfer_core::openai::apis::Streams;
use flexinfer_core::rejection::Rejection;
use pingora_core::modules::http::HttpModules;
use pingora_core::protocols::Digest;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{BError, Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};
use tracing::debug;

use crate::context::{Context, Target};
use crate::parts::Parts;
use crate::server;
use crate::stages::receive::Request;
use crate::stages::settle::Ending;
use crate::stages::{
    Stop, account, adapt, client_left, connect, dispatch, identify, judge, limit, lists, read,
    receive, relay, resolve, respond, send, sessions, settle, tie, understand,
};

/// The proxy that Pingora runs. Cheap to clone: each thread has one.
#[derive(Clone)]
pub struct Proxy {
    parts: Arc<Parts>,
}

impl Proxy {
    /// A proxy made of `parts`.
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// Everything that happens before an engine is connected to.
    async fn admit(&self, session: &mut Session, context: &mut Context) -> Result<(), Stop> {
        let parts = &*self.parts;
        let fleet = parts.fleet.load_full();
        let request = receive::receive(parts, &fleet, session, context)?;
        if !request.is_public() {
            identify::identify(parts, session, context)?;
        }
        let call = match request {
            Request::Engine(call) => call,
            Request::Page(page, name) => {
                let page = (page, name);
                let own = lists::answer(parts, &fleet, session, context, page).await?;
                return Err(Stop::Answered(own));
            }
        };
        // What the head settles is settled before the body is read, or invited by a 100.
        let find = |name: &str, context: &Context| {
            resolve::resolve(&fleet, context.ruled.caller.as_deref(), &call, name)
                .inspect_err(|rejection| resolve::count(parts, context, rejection))
        };
        let mut named = match call.model.as_deref() {
            Some(name) => Some(find(name, context)?),
            None => resolve::maker(parts, &fleet, context.ruled.caller.as_deref(), &call)?,
        };
        if let Some(model) = named.as_ref().and_then(Named::single) {
            limit::by_head(parts, context, model)?;
        }
        let mut stream = false;
        let early = read::early(parts, session, context, &call, named.as_ref());
        if let Some(arrived) = read::read(parts, session, context, call.announced, early).await? {
            let understood =
                understand::understand(session, context, call.operation, &arrived).await?;
            if named.is_none()
                && let Some(name) = understood.model()
            {
                named = Some(find(name, context)?);
            }
            let streams = call.operation.map_or(Streams::Asked, |operation| operation.streams);
            stream = understood.stream(streams, &arrived.received);
            context.body = Some(arrived.body(understood));
        }
        let named = named.ok_or(Rejection::ModelMissing)?;
        let served = resolve::choose(parts, session, &call, context.body.as_ref(), &named).await?;
        let series = parts.metrics.model(served.name());
        context.target = Some(Target {
            served: Arc::clone(&served),
            adapter: named.adapter().cloned(),
            named_in_query: call.is_named_in_query(),
            listed: call.listed,
            path: call.path,
            prefix: call.prefix,
            stream,
            series,
        });
        limit::limit(parts, context, call.operation).await?;
        understand::wish(parts, session, context).await?;
        tie::tie(parts, session, context, call.operation).await?;
        let booking = parts.dispatch.book(served, context.attempt.wish.clone());
        dispatch::dispatch(session, context, booking).await?;
        adapt::adapt(parts, session, context).await
    }

    /// Ends a request that goes no further; an error means that there is nobody to answer.
    async fn stop(&self, session: &mut Session, context: &mut Context, stop: Stop) -> Result<()> {
        settle::settle(&self.parts, context, Ending::Refused);
        match stop {
            Stop::Answered(own) => respond::own(session, context, own).await,
            Stop::Preflight => respond::preflight(session, context).await,
            Stop::Rejected(rejection) => respond::reject(session, context, &rejection).await,
            Stop::ClientLeft => Err(client_left()),
        }
    }
}

#[async_trait]
impl ProxyHttp for Proxy {
    /// Boxed, since Pingora moves it from one future into another, each of which would have room for it.
    type CTX = Box<Context>;

    /// Called once the head of a request is complete.
    fn new_ctx(&self) -> Box<Context> {
        server::head_arrived();
        Box::new(Context::new())
    }

    /// No modules: nothing is compressed here, least of all a stream of events.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn request_filter(
        &self,
        session: &mut Session,
        context: &mut Box<Context>,
    ) -> Result<bool> {
        match self.admit(session, context).await {
            Ok(()) => Ok(false),
            Err(stop) => self.stop(session, context, stop).await.map(|()| true),
        }
    }

    async fn upstream_peer(
        &self,
        session: &mut Session,
        context: &mut Box<Context>,
    ) -> Result<Box<HttpPeer>> {
        connect::connect(&self.parts, session, context).await.map_err(|stop| match stop {
            Stop::Rejected(rejection) => {
                context.attempt.rejection = Some(rejection);
                Error::new(ErrorType::InternalError)
            }
            Stop::ClientLeft | Stop::Answered(_) | Stop::Preflight => client_left(),
        })
    }

    async fn connected_to_upstream(
        &self,
        session: &mut Session,
        _kept: bool,
        _peer: &HttpPeer,
        engine: RawFd,
        _digest: Option<&Digest>,
        context: &mut Box<Context>,
    ) -> Result<()> {
        connect::connected(engine, session, context);
        Ok(())
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        head: &mut RequestHeader,
        context: &mut Box<Context>,
    ) -> Result<()> {
        send::send(&self.parts, session, head, context)
    }

    async fn request_body_filter(
        &self,
        session: &mut Session,
        piece: &mut Option<Bytes>,
        end: bool,
        context: &mut Box<Context>,
    ) -> Result<()> {
        sessions::hear(piece, context)?;
        if end {
            send::sent(session, context);
            send::watch(&self.parts.limits, session, context);
        }
        Ok(())
    }

    fn fail_to_connect(
        &self,
        session: &mut Session,
        _peer: &HttpPeer,
        context: &mut Box<Context>,
        error: BError,
    ) -> BError {
        judge::not_connected(&self.parts, session, context, error)
    }

    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        session: &mut Session,
        error: BError,
        context: &mut Box<Context>,
        kept: bool,
    ) -> BError {
        judge::broken(&self.parts, session, context, error, kept)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        context: &mut Box<Context>,
    ) -> FailToProxy {
        let answered = answered(session);
        let Some(rejection) = judge::verdict(context, error) else {
            return FailToProxy { error_code: 0, can_reuse_downstream: false };
        };
        session.set_keepalive(None);
        let (error_code, written) = if answered {
            (0, respond::break_off(session, context, &rejection).await)
        } else {
            settle::settle(&self.parts, context, Ending::Refused);
            (rejection.status(), respond::reject(session, context, &rejection).await)
        };
        if let Err(error) = written {
            debug!(%error, "an answer could not be written");
        }
        FailToProxy { error_code, can_reuse_downstream: false }
    }

    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        context: &mut Box<Context>,
    ) -> Result<()> {
        judge::interim(head, context)?;
        judge::busy(&self.parts, head, context)?;
        tie::here(&self.parts, head, context)?;
        judge::without_adapter(&self.parts, head, context)?;
        relay::begin(head, context)?;
        if !relay::is_interim(head.status) {
            send::watch(&self.parts.limits, session, context);
        }
        Ok(())
    }

    fn upstream_response_body_filter(
        &self,
        session: &mut Session,
        piece: &mut Option<Bytes>,
        end: bool,
        context: &mut Box<Context>,
    ) -> Result<Option<Duration>> {
        if end {
            send::unwatch(session, context);
        }
        tie::learn(&self.parts, piece.as_ref(), context);
        sessions::follow(session, piece, context)?;
        relay::pass(&self.parts, piece, end, context);
        Ok(None)
    }

    async fn logging(
        &self,
        session: &mut Session,
        error: Option<&Error>,
        context: &mut Box<Context>,
    ) {
        account::account(&self.parts, session, context, error);
        if let Some(left) = sessions::left(context, error.map(Error::esource)) {
            // Boxed, since no other request has to have room for it.
            Box::pin(sessions::linger(session, left)).await;
        }
    }

    /// Failures are told by the access log and the metrics, once.
    fn suppress_error_log(
        &self,
        _session: &Session,
        _context: &Box<Context>,
        _error: &Error,
    ) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _session: &Session,
        _context: &Box<Context>,
        _error: &Error,
        _occasion: ProxyWarnLogContext,
    ) -> bool {
        true
    }
}

/// Whether the client has had an answer, or the beginning of one.
fn answered(session: &Session) -> bool {
    session.response_written().is_some_and(|head| !relay::is_interim(head.status))
}
