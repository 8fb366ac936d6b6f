//! Weights from a real registry, fetched by Jobs: by tag and by digest, with a login, and told when they cannot be had.

use flexinfer_crds::model::Phase;
use serde_json::{Value, json};

use super::registry::Registry;
use super::weights::{Shelf, cached};

/// A shelf whose controller may ask a registry of the test's.
async fn shelf() -> (Shelf, Registry) {
    let mut shelf = Shelf::without_controller().await;
    let registry = Registry::start(shelf.desk.kubelet.logs()).await;
    let insecure = format!("{},{}", registry.host, registry.front);
    shelf.desk.start_controller(&["--insecure-registries", &insecure]);
    (shelf, registry)
}

/// Where a file of the artifact is on its claim.
fn file(host: &str, repository: &str, revision: &str) -> String {
    let [host, revision] = [host, revision].map(|text| text.replace(':', "%3A"));
    format!("oci/{host}/{repository}@{revision}/config.json")
}

#[tokio::test]
async fn an_artifact_is_fetched_by_tag_and_by_digest_before_its_engine_starts() {
    let (shelf, registry) = shelf().await;
    let Registry { host, digest, .. } = &registry;
    shelf.apply("tagged", &format!("oci://{host}/org/name:v1"), &json!({})).await;
    shelf.apply("pinned", &format!("oci://{host}/org/name@{digest}"), &json!({})).await;
    let status = shelf.ready("tagged").await;
    assert_eq!(cached(&status), ("True".to_owned(), "PrefetchSucceeded".to_owned()));
    assert!(shelf.holds("tagged-cache", &file(host, "org/name", "v1")).await);
    shelf.ready("pinned").await;
    assert!(shelf.holds("pinned-cache", &file(host, "org/name", digest)).await);
}

#[tokio::test]
async fn sec_06_a_registry_that_sends_another_manifest_than_its_digest_names_is_not_believed() {
    let (shelf, registry) = shelf().await;
    let other = format!("sha256:{}", "0".repeat(64));
    let wrong = format!("oci://{}/org/wrong@{other}", registry.front);
    shelf.apply("wrong", &wrong, &json!({})).await;
    let missing = format!("oci://{}/org/name@{other}", registry.host);
    shelf.apply("missing", &missing, &json!({})).await;
    for (name, told) in
        [("wrong", registry.digest.as_str()), ("missing", "there is no `sha256:000")]
    {
        let failed = shelf.desk.until_phase(name, Phase::Failed).await;
        assert_eq!(cached(&failed), ("False".to_owned(), "PrefetchFailed".to_owned()));
        let message = failed.message.unwrap();
        assert!(message.contains(told), "{name}: {message}");
        assert_eq!(
            shelf.pods_of(&format!("{name}-cache-prefetch")).await.len(),
            1,
            "again is no use"
        );
    }
    assert!(!shelf.holds("wrong-cache", &file(&registry.front, "org/wrong", &other)).await);
}

#[tokio::test]
async fn a_registry_that_wants_a_login_is_given_the_models_pull_secret() {
    let (shelf, registry) = shelf().await;
    let source = format!("oci://{}/org/closed@{}", registry.front, registry.digest);
    shelf.apply("m", &source, &json!({})).await;
    let failed = shelf.desk.until_phase("m", Phase::Failed).await;
    let message = failed.message.unwrap();
    assert!(message.contains("flexinfer.ai/image-pull-secrets"), "{message}");
    apply(&shelf, &registry.login("front")).await;
    let annotation = "flexinfer.ai/image-pull-secrets=front";
    shelf.desk.models.succeed(&["annotate", "model", "m", annotation], "").await;
    shelf.ready("m").await;
    let fetched = file(&registry.front, "org/closed", &registry.digest);
    assert!(shelf.holds("m-cache", &fetched).await);
}

async fn apply(shelf: &Shelf, object: &Value) {
    shelf.desk.models.succeed(&["apply", "--filename", "-"], &object.to_string()).await;
}
