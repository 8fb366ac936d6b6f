//! LoRA adapters in local mode: loaded with their model's engine, and asked for by their own names.

use flexinfer_testkit::eventually_async;
use serde_json::json;

use crate::serving_world::{BOUND, Serving, get};

const MODEL: &str = "
apiVersion: inference.flexinfer.ai/v1alpha2
kind: Model
metadata: {name: base}
spec:
  backend: simulator
  config: {servedModelName: org/base, loadTime: 50ms, timePerToken: 1ms}
";

fn adapter(name: &str) -> String {
    format!(
        "
apiVersion: inference.flexinfer.ai/v1alpha2
kind: LoRAAdapter
metadata: {{name: {name}}}
spec:
  modelRef: base
  adapterName: {name}-expert
  source: {{type: LocalPath, uri: ./adapters/{name}}}
"
    )
}

/// The names that the engine of the model itself lists.
async fn known_to_the_engine(serving: &Serving) -> Vec<String> {
    let state = serving.until_phase("base", "Ready").await;
    let endpoint = state["endpoint"].as_str().unwrap().parse().unwrap();
    let listed = get(endpoint, "/v1/models").await.json();
    let name = |model: &serde_json::Value| model["id"].as_str().unwrap().to_owned();
    listed["data"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn an_adapter_that_is_not_preloaded_is_loaded_at_its_first_request() {
    let late = adapter("late") + "  preload: false\n";
    let files = [("base.yaml", MODEL), ("sql.yaml", &adapter("sql")), ("late.yaml", &late)];
    let serving = Serving::start(&files).await;
    assert_eq!(answered_by(&serving, "base").await.0, 200);
    let known = known_to_the_engine(&serving).await;
    assert!(known.contains(&"sql-expert".to_owned()), "{known:?}");
    assert!(!known.contains(&"late-expert".to_owned()), "{known:?}");
    assert_eq!(answered_by(&serving, "late-expert").await, (200, "late-expert".into()));
    let known = known_to_the_engine(&serving).await;
    assert!(known.contains(&"late-expert".to_owned()), "{known:?}");
    assert_eq!(serving.engine_starts("base"), 1);
}

async fn answered_by(serving: &Serving, name: &str) -> (u16, String) {
    let body = json!({
        "model": name, "max_tokens": 2, "messages": [{"role": "user", "content": "Hi"}],
    });
    let answer = serving.post("/v1/chat/completions", &body).await;
    let model = answer.json()["model"].as_str().unwrap_or_default().to_owned();
    (answer.status(), model)
}

#[tokio::test]
async fn an_adapter_answers_under_its_own_name_and_a_new_one_after_its_model_started_again() {
    let serving = Serving::start(&[("base.yaml", MODEL), ("sql.yaml", &adapter("sql"))]).await;
    assert_eq!(answered_by(&serving, "sql-expert").await, (200, "sql-expert".into()));
    assert_eq!(answered_by(&serving, "base").await, (200, "org/base".into()));
    let listed = serving.get("/v1/models").await.json();
    assert_eq!(
        (&listed["data"][1]["id"], &listed["data"][1]["parent"]),
        (&"sql-expert".into(), &"base".into())
    );

    serving.home.write("poet.yaml", &adapter("poet"));
    let both = || async {
        let poet = answered_by(&serving, "poet-expert").await;
        let sql = answered_by(&serving, "sql-expert").await;
        (poet, sql) == ((200, "poet-expert".into()), (200, "sql-expert".into()))
    };
    assert!(eventually_async(BOUND, both).await);

    serving.home.remove("sql.yaml");
    let gone = || async { answered_by(&serving, "sql-expert").await.0 == 404 };
    assert!(eventually_async(BOUND, gone).await);
    assert_eq!(answered_by(&serving, "poet-expert").await.0, 200);
}
