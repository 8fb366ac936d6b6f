//! The first lists, from an API server that holds some of them back.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use kube::client::Body;
use tokio::sync::Semaphore;

use super::*;
use crate::clock::Clock;

/// A cluster without objects. Lists whose path ends with `held` are answered when `released` allows it.
struct Server {
    held: &'static str,
    asked: AtomicUsize,
    released: Semaphore,
}

impl Server {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let uri = request.uri();
        if uri.query().is_some_and(|query| query.contains("watch=")) {
            std::future::pending::<()>().await;
        }
        if uri.path().ends_with(self.held) {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.released.acquire().await.unwrap().forget();
        }
        let list = r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#;
        Ok(Response::new(Body::from(list.as_bytes().to_vec())))
    }
}

#[tokio::test]
async fn nothing_is_decided_while_a_list_is_missing() {
    for held in ["/models", "/nodes", "/deployments", "/pods", "/jobs", "/configmaps"] {
        let (asked, released) = (AtomicUsize::new(0), Semaphore::new(0));
        let server = Arc::new(Server { held, asked, released });
        let answering = Arc::clone(&server);
        let service = tower::service_fn(move |request| Arc::clone(&answering).answer(request));
        let client = Client::new(service, "default");
        let world = Arc::new(World::new(Clock::start()));
        let watching = Watching { namespace: None, results: ("flexinfer-system", "results") };
        let (tasks, mut watched) = watch(&client, &watching, &world);
        assert!(tasks.len() > 10);
        // All others are complete, and those held back are known to be missing.
        let of_kind = if held == "/configmaps" { 3 } else { 1 };
        watched.wait_for(|lists| *lists == of_kind).await.unwrap();
        assert_eq!(server.asked.load(Ordering::SeqCst), of_kind, "{held}");
        server.released.add_permits(of_kind);
        synced(watched).await;
    }
}
