//! LoRA adapters of a cluster's models: found by their names, and loaded into the engines by gateways.

use flexinfer_testkit::simulator::{Running, Settings};
use serde_json::{Value, json};

use super::world::{Site, get};
use crate::shared::eventually;

fn adapter(name: &str) -> Value {
    json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "LoRAAdapter",
        "metadata": { "name": name },
        "spec": {
            "modelRef": "a",
            "adapterName": name,
            "source": { "type": "LocalPath", "uri": format!("adapters/{name}") },
        },
    })
}

fn loads(engine: &Running, path: &str) -> usize {
    engine.requests().iter().filter(|request| request.path == path).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_is_loaded_before_its_engine_is_used_and_by_several_gateways() {
    let site = Site::new().await;
    site.simulated("a").await;
    site.models.apply(&adapter("sql")).await;
    let (one, two) = (site.gateway("one").await, site.gateway("two").await);
    one.knows("a").await;
    let engine = site.engine(Settings::default()).await;
    site.list("a", &engine).await;
    for gateway in [&one, &two] {
        let answer = gateway.ask("sql").await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.json()["model"], "sql");
    }
    let listed = get(one.address, "/v1/models").await.json();
    assert!(
        listed["data"].as_array().unwrap().iter().any(|model| model["id"] == "sql"),
        "{listed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_comes_and_goes_while_its_engine_is_up() {
    let site = Site::new().await;
    site.simulated("a").await;
    let gateway = site.gateway("one").await;
    let engine = site.engine(Settings::default()).await;
    site.list("a", &engine).await;
    assert_eq!(gateway.ask("a").await.status(), 200);
    assert_eq!(gateway.ask("sql").await.status(), 404);
    site.models.apply(&adapter("sql")).await;
    eventually("the adapter is served", async || {
        (gateway.ask("sql").await.status() == 200).then_some(())
    })
    .await;
    site.models.succeed(&["delete", "loraadapter", "sql"], "").await;
    eventually("the engine has forgotten it", async || {
        (loads(&engine, "/v1/unload_lora_adapter") == 1).then_some(())
    })
    .await;
    assert_eq!(gateway.ask("sql").await.status(), 404);
    assert_eq!(gateway.ask("a").await.status(), 200);
}
