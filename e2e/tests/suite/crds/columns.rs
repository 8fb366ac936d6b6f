//! What a person sees of Models.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Models, model};
use crate::shared::eventually;

/// Where each heading begins, and the text below it.
fn cells(table: &str) -> Vec<(String, String)> {
    let mut lines = table.lines();
    let (heads, row) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(lines.next(), None, "more than one row: {table}");
    let heads = heads.split_whitespace();
    heads.map(str::to_owned).zip(row.split_whitespace().map(str::to_owned)).collect()
}

#[tokio::test]
async fn kubectl_get_mdl_shows_what_each_model_does() {
    let models = Models::new().await;
    let gpu = json!({ "shared": "gpu0", "priority": 10 });
    models.apply(&model("llama", &json!({ "backend": "simulator", "gpu": gpu }))).await;
    let status =
        json!({ "status": { "phase": "Ready", "metrics": { "tokensPerSecond": "41.5" } } });
    let patch = PatchParams::default();
    models.api().patch_status("llama", &patch, &Patch::Merge(status)).await.unwrap();

    let short = cells(&models.succeed(&["get", "mdl"], "").await.stdout);
    let heads: Vec<_> = short.iter().map(|(head, _)| head.as_str()).collect();
    assert_eq!(heads, ["NAME", "BACKEND", "PHASE", "TPS", "AGE"]);
    let wide = cells(&models.succeed(&["get", "models", "--output=wide"], "").await.stdout);
    let (age, rest) = wide.split_last().unwrap();
    assert_eq!(age.0, "AGE");
    let rest: Vec<_> = rest.iter().map(|(head, text)| format!("{head}={text}")).collect();
    assert_eq!(
        rest,
        [
            "NAME=llama",
            "BACKEND=simulator",
            "PHASE=Ready",
            "SHARED=gpu0",
            "PRIORITY=10",
            "TPS=41.5"
        ]
    );
}

#[tokio::test]
async fn kubectl_explain_tells_what_a_field_is_for() {
    let models = Models::new().await;
    // A server publishes what it knows of a new kind a moment after it serves the kind.
    let printed = eventually("the kind is described", async || {
        let printed = models.kubectl(&["explain", "model.spec.gpu.shared"], "").await;
        printed.success.then_some(printed.stdout)
    })
    .await;
    assert!(printed.contains("shared <string>"), "{printed}");
    assert!(printed.contains("DESCRIPTION"), "{printed}");
}
