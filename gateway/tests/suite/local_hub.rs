//! A hub on loopback that has the repository `org/name` with the one file `weights.txt`, and is a registry with the
//! same. What can go wrong with either is tested where downloads are made, in `fetching`.

use axum::Router;
use axum::routing::get;
use serde_json::json;

/// Serves until it is dropped.
pub(crate) struct Hub {
    pub(crate) endpoint: String,
    _runtime: tokio::runtime::Runtime,
}

const WEIGHTS: &str = "the weights";
const DIGEST: &str = "sha256:f38329d231164082b94f28edf29bff349b44403e09fc4057d65b31051f4ae6b5";

impl Hub {
    pub(crate) fn start() -> Self {
        Self::with(WEIGHTS)
    }

    /// A hub whose file has these contents.
    pub(crate) fn with(weights: &str) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let list = json!({
            "sha": "a".repeat(40),
            "siblings": [{ "rfilename": "weights.txt", "size": weights.len() }],
        });
        let manifest = json!({ "schemaVersion": 2, "layers": [{
            "digest": DIGEST, "size": weights.len(),
            "annotations": { "org.opencontainers.image.title": "weights.txt" },
        }]});
        let weights = weights.to_owned();
        let blob = weights.clone();
        let router = Router::new()
            .route(
                "/api/models/org/name/revision/{revision}",
                get(move || async move { axum::Json(list) }),
            )
            .route("/org/name/resolve/{revision}/weights.txt", get(move || async move { weights }))
            .route("/v2/org/name/manifests/v1", get(move || async move { axum::Json(manifest) }))
            .route("/v2/org/name/blobs/{digest}", get(move || async move { blob }));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { endpoint, _runtime: runtime }
    }
}
