//! How soon a model that is ready is made use of: measured by the engine's own clock and printed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::serving_models::simulated;
use crate::serving_world::{Serving, assert_ok, get};

/// The requests that the engine of a model that serves has seen.
async fn seen(gateway: &Serving, model: &str) -> Vec<Value> {
    let state = gateway.until_phase(model, "Ready").await;
    let endpoint = state["endpoint"].as_str().unwrap().parse().unwrap();
    get(endpoint, "/simulate/requests").await.json().as_array().unwrap().clone()
}

#[tokio::test]
async fn a_waiting_request_is_sent_soon_after_its_model_is_ready() {
    let shared = "  gpu:\n    shared: gpu0\n";
    let config = json!({ "loadTime": "150ms", "logRequests": true });
    let files = [
        ("a.yaml", &*simulated("first", &config, shared)),
        ("b.yaml", &*simulated("second", &config, shared)),
    ];
    let gateway = Serving::start(&files).await;
    let mut delays = Vec::new();
    // In turn, so that each of them is an activation.
    for model in ["first", "second"].into_iter().cycle().take(24) {
        assert_ok(&gateway.chat(model).await);
        let seen = seen(&gateway, model).await;
        let chat = seen.iter().find(|seen| seen["method"] == "POST").unwrap();
        delays.push(Duration::from_micros(chat["since_loaded_us"].as_u64().unwrap()));
    }
    delays.sort_unstable();
    let (median, worst) = (delays[delays.len() / 2], delays[delays.len() - 1]);
    println!("from ready to the request: median {median:?}, worst {worst:?} of {}", delays.len());
    assert!(median <= Duration::from_millis(250), "median {median:?}, worst {worst:?}");
}

#[tokio::test]
async fn a_model_that_loads_is_probed_every_few_milliseconds_and_no_more() {
    let config = json!({ "loadTime": "1s", "logRequests": true });
    let gateway = Serving::start(&[("llama.yaml", &simulated("llama", &config, ""))]).await;
    assert_ok(&gateway.chat("llama").await);
    let seen = seen(&gateway, "llama").await;
    let probes = seen.iter().filter(|seen| seen["path"] == "/health" && seen["status"] == 503);
    let probes = probes.count();
    println!("{probes} probes in a load of a second");
    // 5 ms apart for half a second, then 1 % of the load: some 170 on an idle machine.
    assert!((20..=210).contains(&probes), "{probes}");
}
