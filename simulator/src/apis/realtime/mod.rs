//! `GET /v1/realtime?model=…`, OpenAI's API over a WebSocket: a conversation is told item by item and
//! answered word by word. Answers are text, whatever modality is asked for.

mod conversation;
mod wording;

use std::sync::Arc;

use axum::extract::ws::{self, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Call, Turn};
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::faults::Cut;
use crate::generation::{CutOff, Generation, Piece};
use conversation::{Conversation, Effect};
use wording::Answer;

/// The name of the protocol; what else a client offers carries its key, and is not taken.
const PROTOCOL: &str = "realtime";

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    model: Option<String>,
}

/// Opens a conversation.
pub(super) async fn open(
    upgrade: WebSocketUpgrade,
    Query(asked): Query<Asked>,
    State(engine): State<Arc<Engine>>,
    call: Call,
) -> Result<Response, Refusal> {
    call.admit()?;
    let model = call.model(asked.model.as_deref())?;
    let token = engine.aside.token();
    Ok(upgrade.protocols([PROTOCOL]).on_upgrade(move |socket| async move {
        let stop = engine.stop.clone();
        let talk = Talk { socket, turn: call.turn.clone(), writing: None };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = talk.hold(Conversation::new(call, model)) => {}
        }
        drop(token);
    }))
}

/// The socket, and the answer that is being written to it.
struct Talk {
    socket: WebSocket,
    turn: Turn,
    writing: Option<Writing>,
}

/// An answer under way. The step is kept between looks at the socket, so that none is begun twice.
struct Writing {
    answer: Answer,
    step: futures::future::BoxFuture<'static, Step>,
}

type Step = (Generation, Result<Option<Vec<Piece>>, CutOff>);

fn step(mut generation: Generation) -> futures::future::BoxFuture<'static, Step> {
    Box::pin(async move {
        let next = generation.next().await;
        (generation, next)
    })
}

/// The socket is closed, or has to be.
struct Over;

impl Talk {
    async fn hold(mut self, mut conversation: Conversation) -> Result<(), Over> {
        self.send(conversation.opening()).await?;
        loop {
            let said = match &mut self.writing {
                None => Said::Client(self.socket.recv().await),
                Some(writing) => tokio::select! {
                    message = self.socket.recv() => Said::Client(message),
                    step = &mut writing.step => Said::Engine(Box::new(step)),
                },
            };
            match said {
                Said::Client(Some(Ok(ws::Message::Text(text)))) => {
                    let event = serde_json::from_str(&text).unwrap_or(Value::Null);
                    for effect in conversation.hear(&event, self.writing.is_some()) {
                        self.carry_out(&mut conversation, effect).await?;
                    }
                }
                Said::Client(Some(Ok(ws::Message::Close(_)) | Err(_)) | None) => return Ok(()),
                Said::Client(Some(Ok(_))) => {}
                Said::Engine(step) => {
                    let (generation, next) = *step;
                    self.go_on(&mut conversation, generation, next).await?;
                }
            }
        }
    }

    async fn carry_out(
        &mut self,
        conversation: &mut Conversation,
        effect: Effect,
    ) -> Result<(), Over> {
        match effect {
            Effect::Tell(event) => self.send(vec![event]).await,
            Effect::Begin(generation) => {
                let mut answer = Answer::new(conversation.id("resp_"), conversation.id("item_"));
                let opening = answer.opening();
                self.writing = Some(Writing { answer, step: step(*generation) });
                self.send(opening).await
            }
            Effect::Cancel => {
                let Some(mut writing) = self.writing.take() else { return Ok(()) };
                self.send(writing.answer.closing("cancelled", None)).await
            }
        }
    }

    /// One token further, or at the end.
    async fn go_on(
        &mut self,
        conversation: &mut Conversation,
        generation: Generation,
        next: Result<Option<Vec<Piece>>, CutOff>,
    ) -> Result<(), Over> {
        let Some(writing) = &mut self.writing else { return Ok(()) };
        match next {
            Ok(Some(pieces)) => {
                let told = pieces.iter().map(|piece| writing.answer.piece(&piece.text)).collect();
                writing.step = step(generation);
                self.send(told).await
            }
            Ok(None) => {
                let told = writing.answer.closing("completed", Some(generation.usage));
                conversation.answered(writing.answer.text());
                self.writing = None;
                self.send(told).await
            }
            Err(CutOff) => {
                if self.turn.faults.cut == Cut::Reset {
                    self.turn.wire.end_with_reset();
                }
                Err(Over)
            }
        }
    }

    async fn send(&mut self, events: Vec<Value>) -> Result<(), Over> {
        for event in events {
            let message = ws::Message::text(event.to_string());
            self.socket.send(message).await.map_err(|_| Over)?;
        }
        Ok(())
    }
}

enum Said {
    Client(Option<Result<ws::Message, axum::Error>>),
    Engine(Box<Step>),
}

/// An event that tells what was wrong with one of the client's.
fn wrong(event: &Value, code: &str, message: &str) -> Value {
    json!({
        "type": "error",
        "event_id": "event_error",
        "error": {
            "type": "invalid_request_error",
            "code": code,
            "message": message,
            "param": null,
            "event_id": event.get("event_id"),
        },
    })
}
