//! `POST /v1/responses`, whole, as a stream and in the background; `GET`, `DELETE` and cancel by id.

mod store;
mod wording;

use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answer;
use super::call::{Call, now};
use super::chat::limit;
use super::prompt::Prompt;
use super::refusal::Refusal;
use super::tools::{self, Tool};
use crate::generation::{Ask, Generation};
pub(crate) use store::StoredResponses;
use store::{CancelError, Stored};
use wording::{Frame, ResponseWording};

#[derive(Debug, Deserialize)]
struct ResponseRequest {
    model: Option<String>,
    input: Value,
    instructions: Option<String>,
    stream: Option<bool>,
    background: Option<bool>,
    store: Option<bool>,
    previous_response_id: Option<String>,
    max_output_tokens: Option<usize>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    metadata: Option<Value>,
}

/// Answers an input, possibly going on from an earlier response.
pub(crate) async fn create(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: ResponseRequest = call.json()?;
    let model = call.model(request.model.as_deref())?;
    let prompt = request.prompt(&call)?;
    let tools = Tool::list(request.tools.as_ref());
    let content = tools::content(&tools, request.tool_choice.as_ref(), &prompt.topic);
    let limit = limit(request.max_output_tokens)?;
    let generation = call.generate(Ask {
        model: model.clone(),
        prompt: prompt.text,
        topics: vec![prompt.topic],
        limit,
        stop: Vec::new(),
        ignores_end: false,
        seed: 0,
        content,
    })?;
    let frame = Frame {
        id: call.id("resp_"),
        created: now(),
        model,
        background: request.background == Some(true),
        store: request.store != Some(false),
        instructions: request.instructions,
        previous: request.previous_response_id,
        limit,
        metadata: request.metadata.unwrap_or_else(|| json!({})),
    };
    if request.stream == Some(true) {
        let wording = ResponseWording::new(&call.engine, frame);
        return Ok(answer::events(&call.turn, generation, wording));
    }
    if frame.background {
        return Ok(answer::json(&call.turn, &begin_in_background(&call, generation, frame)));
    }
    Ok(answer::json(&call.turn, &wait(&call, generation, &frame).await))
}

impl ResponseRequest {
    fn prompt(&self, call: &Call) -> Result<Prompt, Refusal> {
        let mut prompt = Prompt::default();
        if let Some(instructions) = &self.instructions {
            prompt.add("system", &json!(instructions));
        }
        if let Some(id) = &self.previous_response_id {
            prompt.text.push_str(&find(call, id)?.conversation);
        }
        match &self.input {
            Value::Array(items) => {
                let turns = Prompt::from_messages(items);
                prompt.text.push_str(&turns.text);
                prompt.topic = turns.topic;
            }
            Value::String(_) => prompt.add("user", &self.input),
            _ => return Err(Refusal::bad_request("input must be a string or a list")),
        }
        Ok(prompt)
    }
}

async fn wait(call: &Call, mut generation: Generation, frame: &Frame) -> Value {
    let text = generation.run_to_end().await.concat();
    let stored = frame.stored(&generation, &text);
    let object = stored.object.clone();
    if frame.store {
        call.engine.responses.keep(&frame.id, stored);
    }
    object
}

/// Keeps the response as queued and works on it until it is over, cancelled, or the engine ends.
fn begin_in_background(call: &Call, mut generation: Generation, frame: Frame) -> Value {
    let work: CancellationToken = call.engine.stop.child_token();
    let object = frame.object("queued", &json!([]), None);
    let begun = Stored {
        object: object.clone(),
        conversation: generation.ask.prompt.clone(),
        work: Some(work.clone()),
    };
    call.engine.responses.keep(&frame.id, begun.clone());
    let engine = call.engine.clone();
    tokio::spawn(async move {
        let object = frame.object("in_progress", &json!([]), None);
        engine.responses.progress(&frame.id, Stored { object, ..begun });
        let text = tokio::select! {
            () = work.cancelled() => return,
            texts = generation.run_to_end() => texts.concat(),
        };
        let over = Stored { work: Some(work.clone()), ..frame.stored(&generation, &text) };
        engine.responses.progress(&frame.id, over);
    });
    object
}

/// Shows a kept response.
pub(crate) async fn show(Path(id): Path<String>, call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    Ok(answer::json(&call.turn, &find(&call, &id)?.object))
}

/// Forgets a kept response, and ends the work on it.
pub(crate) async fn delete(Path(id): Path<String>, call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    if !call.engine.responses.remove(&id) {
        return Err(unknown(&id));
    }
    Ok(answer::json(&call.turn, &json!({"id": id, "object": "response", "deleted": true})))
}

/// Ends the work on a response in the background.
pub(crate) async fn cancel(Path(id): Path<String>, call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    match call.engine.responses.cancel(&id) {
        Ok(object) => Ok(answer::json(&call.turn, &object)),
        Err(CancelError::Unknown) => Err(unknown(&id)),
        Err(CancelError::NotInBackground) => {
            Err(Refusal::bad_request("Cannot cancel a synchronous response."))
        }
    }
}

fn find(call: &Call, id: &str) -> Result<Stored, Refusal> {
    call.engine.responses.get(id).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Refusal {
    Refusal::NotFound(format!("Response with id '{id}' not found."))
}
