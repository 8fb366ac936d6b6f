//! Sessions over WebSockets with models that sleep.

use flexinfer_testkit::websocket::Socket;
use serde_json::json;

use crate::serving_models::simulated;
use crate::serving_world::Serving;

fn model(name: &str) -> String {
    let more = "  serverless:\n    idleTimeout: 300ms\n";
    simulated(name, &json!({ "loadTime": "50ms" }), more)
}

#[tokio::test]
async fn a_realtime_session_wakes_its_model_and_keeps_it_awake() {
    let gateway = Serving::start(&[("talker.yaml", &model("talker"))]).await;
    gateway.until_phase("talker", "Idle").await;
    let offered = [("sec-websocket-protocol", "realtime")];
    let path = "/v1/realtime?model=talker";
    let mut socket = Socket::open(gateway.address, path, &offered).await.expect("it opens");
    assert_eq!(socket.protocol.as_deref(), Some("realtime"));
    socket.hear_until("session.created").await;
    gateway.until_phase("talker", "Ready").await;
    let content = json!([{"type": "input_text", "text": "Hello"}]);
    for _ in 0..2 {
        let item = json!({"type": "message", "role": "user", "content": content});
        socket.say(&json!({"type": "conversation.item.create", "item": item})).await;
        socket.say(&json!({"type": "response.create"})).await;
        let heard = socket.hear_until("response.done").await;
        assert_eq!(heard.last().unwrap()["response"]["status"], "completed");
    }
    assert!(gateway.metric("active_connections", "talker").await > 0.0, "it holds its slot");
    socket.close().await;
    gateway.until_quiet("talker").await;
    gateway.until_phase("talker", "Idle").await;
    assert_eq!(gateway.engine_starts("talker"), 1);
    let phases = gateway.metric("activation_phase_duration_seconds_count", "talker").await;
    assert!(phases >= 1.0, "the phases of its start are told");
}

#[tokio::test]
async fn a_comfyui_session_wakes_its_model_and_a_socket_for_a_name_of_nobody_is_refused() {
    let gateway = Serving::start(&[("painter.yaml", &model("painter"))]).await;
    let path = "/model/painter/ws?clientId=c1";
    let mut socket = Socket::open(gateway.address, path, &[]).await.expect("it opens");
    assert_eq!(socket.hear_until("status").await[0]["data"]["sid"], "c1");
    let graph = json!({"1": {"class_type": "SaveImage", "inputs": {}}});
    let queued =
        gateway.post("/model/painter/prompt", &json!({"prompt": graph, "client_id": "c1"})).await;
    assert_eq!(queued.status(), 200, "{}", queued.text());
    let heard = socket.hear_until("execution_success").await;
    assert_eq!(heard.last().unwrap()["data"]["prompt_id"], queued.json()["prompt_id"]);
    for path in ["/v1/realtime?model=nobody", "/model/nobody/ws?clientId=c1"] {
        assert_eq!(Socket::open(gateway.address, path, &[]).await.err(), Some(404), "{path}");
    }
}
