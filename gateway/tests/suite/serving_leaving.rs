//! Clients that leave, in every phase of a request: whatever was theirs is given back.

use std::time::Duration;

use flexinfer_testkit::client::Client;
use futures::future::join_all;
use serde_json::json;

use crate::serving_models::simulated;
use crate::serving_world::{BOUND, Serving, WITHOUT_END, assert_ok};

#[tokio::test]
async fn queue_03_clients_that_leave_in_any_phase_leave_nothing_behind() {
    let sleepy = "  serverless:\n    idleTimeout: 1s\n";
    let config = json!({ "loadTime": "2s", "maxConcurrency": 1, "timePerToken": "10ms",
        "allowRequestFaults": true });
    let mut gateway = Serving::start(&[("llama.yaml", &simulated("llama", &config, sleepy))]).await;

    // While it sends its body.
    let mut client = Client::connect(gateway.address).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{";
    client.send(head.as_bytes()).await.unwrap();
    drop(client);

    // While the model is woken.
    let client = gateway.ask("llama").await;
    gateway.until_phase("llama", "Loading").await;
    drop(client);
    gateway.until_quiet("llama").await;

    // In the middle of a stream, and another meanwhile in the queue.
    let stream = gateway.stream("llama", WITHOUT_END).await;
    let client = gateway.ask("llama").await;
    gateway.until("llama", "waited for", |state| state["waiting"] == 1).await;
    drop(client);
    gateway.until("llama", "not waited for", |state| state["waiting"] == 0).await;
    assert!((gateway.metric("active_connections", "llama").await - 1.0).abs() < 0.1);
    drop(stream);
    gateway.until_quiet("llama").await;

    // Before the first byte of the answer.
    let mut client = Client::connect(gateway.address).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx-simulate-never-answers: true\r\n\
                content-length: 34\r\n\r\n{\"model\": \"llama\", \"messages\": []}";
    client.send(head.as_bytes()).await.unwrap();
    gateway.until("llama", "asked", |state| state["inFlight"] == 1).await;
    drop(client);
    gateway.until_quiet("llama").await;

    // So it goes to sleep, and a gateway with nothing in flight ends at once.
    gateway.until_phase("llama", "Idle").await;
    gateway.program.terminate();
    assert!(gateway.program.exited(BOUND).await.unwrap().success());
}

#[tokio::test]
async fn queue_02_slots_survive_clients_that_leave_around_their_dispatch() {
    let config = json!({ "maxConcurrency": 2, "timePerToken": "5ms", "answerTokens": 2 });
    let gateway = Serving::start(&[("llama.yaml", &simulated("llama", &config, ""))]).await;
    assert_ok(&gateway.chat("llama").await);
    for round in 0..40 {
        let leaving = (0..8).map(|number| {
            let gateway = &gateway;
            async move {
                let mut client = gateway.ask("llama").await;
                // Any moment will do; these are spread over the time that two answers take.
                let stay = Duration::from_micros((round * 8 + number) * 7_919 % 30_000);
                let _ = tokio::time::timeout(stay, client.answer()).await;
            }
        });
        join_all(leaving).await;
    }
    gateway.until_quiet("llama").await;

    // Both slots are there, and no third one.
    let streams =
        [gateway.stream("llama", WITHOUT_END).await, gateway.stream("llama", WITHOUT_END).await];
    let mut third = gateway.ask("llama").await;
    gateway.until("llama", "waited for", |state| state["waiting"] == 1).await;
    assert_eq!(gateway.state("llama").await["inFlight"], 2);
    drop(streams);
    assert_ok(&third.answer().await.unwrap());
}
