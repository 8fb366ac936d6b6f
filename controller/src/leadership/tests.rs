//! The lead under a server that is slow, silent, or gives it to somebody else; the clock is the test's.

use std::sync::Arc;

use flexinfer_testkit::api_server::refusal;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

const A_MINUTE: Duration = Duration::from_secs(60);

/// A server that keeps one Lease, and takes as long to answer as it is told to.
#[derive(Clone)]
struct Server {
    lease: Arc<Mutex<Option<Value>>>,
    began: Instant,
    /// How long an answer takes that was asked for so long after the beginning.
    delay: fn(Duration) -> Duration,
}

impl Server {
    fn new(delay: fn(Duration) -> Duration) -> Self {
        Self { lease: Arc::default(), began: Instant::now(), delay }
    }

    fn candidate(&self) -> Candidate {
        let server = self.clone();
        let service = service_fn(move |request| server.clone().answer(request));
        Candidate::new(Client::new(service, "default"), "default", "me")
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        sleep((self.delay)(self.began.elapsed())).await;
        let get = request.method() == Method::GET;
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut lease = self.lease.lock();
        if !get {
            *lease = Some(serde_json::from_slice(&body).unwrap());
        }
        let (status, body) = match &*lease {
            Some(lease) => (200, lease.clone()),
            None => refusal(404, "NotFound", "no such lease"),
        };
        let answer =
            Response::builder().status(status).body(Body::from(body.to_string().into_bytes()));
        Ok(answer.unwrap())
    }

    fn is_taken_by(&self, holder: &str) {
        let mut lease = self.lease.lock();
        lease.as_mut().unwrap()["spec"]["holderIdentity"] = json!(holder);
    }
}

/// Silent from the second on, until the renewal nine seconds after the beginning, which takes two and a half.
fn slow_for_a_while(since: Duration) -> Duration {
    match since.as_secs() {
        2..8 => Duration::from_secs(1000),
        8..12 => Duration::from_millis(1250),
        _ => Duration::ZERO,
    }
}

#[tokio::test(start_paused = true)]
async fn a_lead_that_is_renewed_too_late_comes_back_to_those_who_wait_for_it() {
    let server = Server::new(slow_for_a_while);
    let mut holder = server.candidate().win().await;
    let leadership = holder.leadership();
    let waiting = async {
        while leadership.left().is_some() {
            sleep(Duration::from_millis(100)).await;
        }
        let lapsed = server.began.elapsed();
        leadership.regained().await;
        (lapsed, server.began.elapsed())
    };
    let (lapsed, regained) = tokio::select! {
        () = holder.hold() => panic!("the lease was its own all the time"),
        times = waiting => times,
    };
    assert!(lapsed >= Duration::from_secs(10), "{lapsed:?}");
    assert!(regained > lapsed, "{regained:?}");
    assert!(leadership.left().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lead_that_somebody_else_took_meanwhile_is_lost() {
    // The second took it and gave it back: it has acted all the same.
    for holder in ["another", ""] {
        let server = Server::new(slow_for_a_while);
        let mut lead = server.candidate().win().await;
        let taken = async {
            sleep(Duration::from_secs(5)).await;
            server.is_taken_by(holder);
        };
        let (held, ()) = tokio::join!(timeout(A_MINUTE, lead.hold()), taken);
        held.expect("it holds what is not its own");
        assert_eq!(lead.leadership().left(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lead_that_cannot_be_renewed_ends() {
    let server = Server::new(|since| Duration::from_secs(1000 * u64::from(since.as_secs() > 1)));
    let mut lead = server.candidate().win().await;
    timeout(A_MINUTE, lead.hold()).await.expect("nothing was renewed");
    assert_eq!(lead.leadership().left(), None);
}
