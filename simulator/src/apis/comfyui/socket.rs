//! `GET /ws?clientId=…`: a client hears what is done for it, and how much is left for all.

use std::sync::Arc;

use axum::extract::ws::{self, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::refused::Refused;
use super::studio::{Message, Told};
use crate::apis::call::Call;
use crate::engine::Engine;

#[derive(Debug, Deserialize)]
pub(super) struct Listener {
    #[serde(rename = "clientId")]
    client: Option<String>,
}

/// Opens a socket.
pub(super) async fn open(
    upgrade: WebSocketUpgrade,
    Query(listener): Query<Listener>,
    State(engine): State<Arc<Engine>>,
    call: Call,
) -> Result<Response, Refused> {
    call.admit()?;
    let client = listener.client.unwrap_or_else(|| call.id("client-"));
    let token = engine.aside.token();
    Ok(upgrade.on_upgrade(move |socket| async move {
        let stop = engine.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = serve(socket, &client, &engine) => {}
        }
        drop(token);
    }))
}

async fn serve(mut socket: WebSocket, client: &str, engine: &Arc<Engine>) {
    let told = engine.studio.listen();
    let state = json!({"status": engine.studio.state(), "sid": client});
    let mut first = vec![json!({"type": "status", "data": state})];
    // Who comes back hears at which node its job is.
    if let Some(node) = engine.studio.node_for(client) {
        first.push(json!({"type": "executing", "data": {"node": node}}));
    }
    for message in first {
        if socket.send(ws::Message::text(message.to_string())).await.is_err() {
            return;
        }
    }
    pass_on(socket, client, told).await;
}

async fn pass_on(mut socket: WebSocket, client: &str, mut told: Receiver<Told>) {
    loop {
        let message = tokio::select! {
            told = told.recv() => match told {
                Ok(told) if told.client.as_deref().is_none_or(|other| other == client) => told.message,
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            },
            // What a client says changes nothing here; that it leaves does.
            said = socket.recv() => match said {
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return,
            },
        };
        let message = match message {
            Message::Text(text) => ws::Message::text(text),
            Message::Picture(picture) => ws::Message::Binary(picture),
        };
        if socket.send(message).await.is_err() {
            return;
        }
    }
}
