//! OpenAI's realtime API: a conversation over a WebSocket.

use std::time::Duration;

use flexinfer_simulator::{AnswerFaults, Settings, Timings};
use flexinfer_testkit::websocket::{Socket, Told};
use serde_json::{Value, json};

use crate::client::{World, reach};

async fn socket(world: &World) -> Socket {
    let offered = [("sec-websocket-protocol", "realtime, openai-insecure-api-key.k")];
    let path = "/v1/realtime?model=m";
    let mut socket = Socket::open(world.engine.addr, path, &offered).await.unwrap();
    assert_eq!(socket.protocol.as_deref(), Some("realtime"));
    assert_eq!(socket.hear_until("session.created").await[0]["session"]["model"], "m");
    socket
}

fn said(text: &str) -> Value {
    let content = json!([{"type": "input_text", "text": text}]);
    json!({"type": "conversation.item.create",
           "item": {"type": "message", "role": "user", "content": content}})
}

fn answer(limit: usize) -> Value {
    json!({"type": "response.create", "response": {"max_output_tokens": limit}})
}

#[tokio::test]
async fn what_is_said_is_answered_word_by_word() {
    let world = World::new(Settings::named("m")).await;
    let mut socket = socket(&world).await;
    socket.say(&said("Hello there")).await;
    let item = socket.hear_until("conversation.item.done").await;
    assert_eq!(item[0]["type"], "conversation.item.added");
    socket.say(&answer(6)).await;
    let heard = socket.hear_until("response.done").await;
    assert_eq!(heard[0]["type"], "response.created");
    let deltas = heard.iter().filter(|event| event["type"] == "response.output_text.delta");
    let text: String = deltas.clone().map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(deltas.count(), 6);
    let response = &heard.last().unwrap()["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], text);
    assert_eq!(
        (&response["status"], &response["usage"]["output_tokens"]),
        (&json!("completed"), &json!(6))
    );
    assert!(heard.iter().all(|event| event["event_id"].is_string()));
}

#[tokio::test]
async fn sound_counts_once_it_is_committed_and_settings_hold_for_the_session() {
    let world = World::new(Settings::named("m")).await;
    let mut socket = socket(&world).await;
    let settings = json!({"max_output_tokens": 2, "instructions": "Be brief."});
    socket.say(&json!({"type": "session.update", "session": settings})).await;
    let updated = socket.hear_until("session.updated").await;
    assert_eq!(updated[0]["session"]["instructions"], "Be brief.");
    let commit = json!({"type": "input_audio_buffer.commit"});
    socket.say(&commit).await;
    assert_eq!(
        socket.hear_until("error").await[0]["error"]["code"],
        "input_audio_buffer_commit_empty"
    );
    socket.say(&json!({"type": "input_audio_buffer.append", "audio": "UklGRg=="})).await;
    socket.say(&commit).await;
    let heard = socket.hear_until("conversation.item.done").await;
    assert_eq!(heard[0]["type"], "input_audio_buffer.committed");
    socket.say(&json!({"type": "response.create"})).await;
    let done = socket.hear_until("response.done").await;
    assert_eq!(done.last().unwrap()["response"]["usage"]["output_tokens"], 2);
}

#[tokio::test]
async fn an_answer_can_be_cancelled_and_there_is_one_at_a_time() {
    let timings = Timings { token: Duration::from_secs(60), ..Timings::default() };
    let world = World::new(Settings { timings, ..Settings::named("m") }).await;
    let mut socket = socket(&world).await;
    socket.say(&answer(9)).await;
    socket.hear_until("response.output_text.delta").await;
    socket.say(&answer(9)).await;
    let refused = socket.hear_until("error").await;
    let code = "conversation_already_has_active_response";
    assert_eq!(refused.last().unwrap()["error"]["code"], code);
    socket.say(&json!({"type": "response.cancel"})).await;
    let done = socket.hear_until("response.done").await;
    assert_eq!(done.last().unwrap()["response"]["status"], "cancelled");
    reach("its slot is free", || world.engine.running() == 0).await;
    socket.say(&json!({"type": "nonsense"})).await;
    assert_eq!(socket.hear_until("error").await.len(), 1);
}

#[tokio::test]
async fn another_model_is_refused_and_an_answer_can_be_cut() {
    let faults = AnswerFaults { cut_after_tokens: Some(2), ..AnswerFaults::default() };
    let world = World::new(Settings { answer_faults: faults, ..Settings::named("m") }).await;
    let refused = Socket::open(world.engine.addr, "/v1/realtime?model=other", &[]).await;
    assert_eq!(refused.err(), Some(404));
    let mut socket = socket(&world).await;
    socket.say(&answer(9)).await;
    let heard = socket.hear_until("response.done").await;
    assert_eq!(heard.last().unwrap()["type"], "response.output_text.delta");
    assert_eq!(socket.hear().await, Told::Closed);
}
