//! The end of the namespace that the controller itself is in. It is told to stop before the Models there are deleted,
//! and whoever came after it would be refused: so it lets them go while it still may.

use flexinfer_crds::{Model, keys};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, PartialObjectMeta, Patch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::author::signed;

/// How many Models are let go at once.
const AT_ONCE: usize = 16;

/// How often one is tried that somebody else writes meanwhile.
const TRIES: usize = 5;

/// Takes our finalizer off the Models of `namespace` if that is being deleted, off each whatever becomes of the others.
/// What they own goes with the namespace. Copies in nodes' memory stay until an agent of whoever comes next sees that
/// nobody needs them, or the node starts anew: our own agents may go as we do.
pub(super) async fn let_go(client: &Client, namespace: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let ends = namespaces.get_opt(namespace).await?;
    if ends.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_none()) {
        return Ok(());
    }
    let models: Api<Model> = Api::namespaced(client.clone(), namespace);
    let all = models.list_metadata(&ListParams::default()).await?;
    let let_go = |model: PartialObjectMeta<Model>| {
        let models = models.clone();
        async move {
            let name = model.name_any();
            let gone = release(&models, model).await;
            gone.inspect_err(|error| tracing::warn!(model = name, %error, "it was not let go"))
        }
    };
    let released: Vec<_> = stream::iter(all).map(let_go).buffer_unordered(AT_ONCE).collect().await;
    let left = released.iter().filter(|released| released.is_err()).count();
    tracing::info!(namespace, left, "the namespace is being deleted, and its Models may go");
    Ok(())
}

/// Takes our finalizer off `model`, and leaves those of others as they are.
async fn release(models: &Api<Model>, model: PartialObjectMeta<Model>) -> Result<(), kube::Error> {
    let name = model.name_any();
    let mut known = Some(model);
    let mut tries = 1..=TRIES;
    loop {
        let ours = |finalizer: &String| finalizer == keys::MODEL_FINALIZER;
        let Some(model) = known.filter(|model| model.finalizers().iter().any(ours)) else {
            return Ok(());
        };
        let others: Vec<_> = model.finalizers().iter().filter(|other| !ours(other)).collect();
        // The version makes the server refuse a list that was read too long ago.
        let patch = json!({ "metadata": {
            "finalizers": others,
            "resourceVersion": model.resource_version(),
        } });
        match models.patch_metadata(&name, &signed(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 && tries.next().is_some() => {}
            written => return written.map(drop),
        }
        known = models.get_metadata_opt(&name).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{Method, Request, Response};
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::Value;

    use super::*;

    /// An API server with a namespace that is being deleted, whose Models have our finalizer and somebody else's.
    #[derive(Default)]
    struct Server {
        /// What was patched, by the Model's name.
        patched: Mutex<Vec<(String, Value)>>,
    }

    fn model(name: &str, version: &str) -> Value {
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {
                "name": name, "namespace": "models", "resourceVersion": version,
                "finalizers": ["theirs", keys::MODEL_FINALIZER],
            },
        })
    }

    impl Server {
        async fn answer(
            self: Arc<Self>,
            request: Request<Body>,
        ) -> Result<Response<Body>, Infallible> {
            let (head, body) = request.into_parts();
            let name = head.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
            let body = body.collect().await.unwrap().to_bytes();
            let (status, answer) = match (head.method, &*name) {
                (Method::GET, "models") if head.uri.path().ends_with("/namespaces/models") => {
                    let deleted = "2026-01-01T00:00:00Z";
                    (200, json!({ "metadata": { "name": "models", "deletionTimestamp": deleted } }))
                }
                (Method::GET, "models") => {
                    let names = ["broken", "busy", "gone", "quiet"];
                    let items: Vec<Value> = names.iter().map(|name| model(name, "1")).collect();
                    (200, json!({ "metadata": {}, "items": items }))
                }
                (Method::GET, name) => (200, model(name, "2")),
                (_, name) => {
                    let patch: Value = serde_json::from_slice(&body).unwrap();
                    let first = patch["metadata"]["resourceVersion"] == "1";
                    self.patched.lock().push((name.to_owned(), patch));
                    match name {
                        "broken" => (500, json!({ "code": 500, "message": "no", "reason": "" })),
                        "gone" => (404, json!({ "code": 404, "message": "no", "reason": "" })),
                        "busy" if first => {
                            (409, json!({ "code": 409, "message": "", "reason": "" }))
                        }
                        name => (200, model(name, "3")),
                    }
                }
            };
            let answer = serde_json::to_vec(&answer).unwrap();
            Ok(Response::builder().status(status).body(Body::from(answer)).unwrap())
        }
    }

    #[tokio::test]
    async fn each_model_is_let_go_whatever_becomes_of_the_others() {
        let server = Arc::new(Server::default());
        let answering = Arc::clone(&server);
        let service = tower::service_fn(move |request| Arc::clone(&answering).answer(request));
        let_go(&Client::new(service, "models"), "models").await.unwrap();
        let patched = server.patched.lock();
        let of = |name: &str| -> Vec<&Value> {
            patched.iter().filter(|(of, _)| of == name).map(|(_, patch)| patch).collect()
        };
        let patch = |version: &str| json!({ "metadata": { "finalizers": ["theirs"], "resourceVersion": version } });
        for name in ["broken", "gone", "quiet"] {
            assert_eq!(of(name), [&patch("1")], "{name}");
        }
        assert_eq!(of("busy"), [&patch("1"), &patch("2")], "somebody else wrote it meanwhile");
    }
}
