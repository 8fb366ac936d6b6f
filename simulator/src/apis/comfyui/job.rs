//! One graph in the queue, and how it is run: node after node, telling its client how far it is.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::graph::{Graph, Node};
use super::nodes::SOCKET_IMAGE;
use super::studio::{Message, Place, Studio};
use crate::apis::answer::set;
use crate::engine::Engine;
use crate::picture;

/// What stands before a picture on the socket: that it is one, and that it is a PNG.
const PNG_FOLLOWS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 2];

/// A graph that was queued.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) number: u64,
    pub(super) client: Option<String>,
    pub(super) interrupted: CancellationToken,
    /// The node that runs now.
    pub(super) node: Mutex<Option<String>>,
    prompt: Value,
    graph: Graph,
}

/// What ended a job before its end.
enum Stopped {
    Interrupted,
    Failed(String),
}

impl Job {
    pub(super) fn new(id: String, client: Option<String>, prompt: Value, graph: Graph) -> Self {
        let (interrupted, node) = (CancellationToken::new(), Mutex::default());
        Self { id, number: 0, client, interrupted, node, prompt, graph }
    }

    /// As the queue and the history show it.
    pub(super) fn shown(&self) -> Value {
        let outputs = self.graph.nodes.iter().filter(|node| node.is_output());
        let outputs: Vec<&str> = outputs.map(|node| node.id.as_str()).collect();
        json!([self.number, self.id, self.prompt, {"client_id": self.client}, outputs])
    }

    /// Tells the client, if there is one.
    pub(super) fn tell(&self, studio: &Studio, kind: &str, mut details: Value) {
        set(&mut details, "prompt_id", json!(self.id));
        let message = json!({"type": kind, "data": details});
        studio.tell(self.client.as_deref(), Message::Text(message.to_string()));
    }

    /// Runs it to its end, and says what the history is to tell.
    pub(super) async fn run(&self, engine: &Arc<Engine>) -> Value {
        let slot = engine.slots.take().await;
        let studio = &engine.studio;
        self.tell(studio, "execution_start", json!({"timestamp": now()}));
        self.tell(studio, "execution_cached", json!({"nodes": [], "timestamp": now()}));
        let mut outputs = Map::new();
        let ended = tokio::select! {
            () = self.interrupted.cancelled() => Err(Stopped::Interrupted),
            ended = self.run_nodes(engine, &mut outputs) => ended,
        };
        drop(slot);
        let (kind, details) = match &ended {
            Ok(()) => ("execution_success", json!({})),
            Err(Stopped::Interrupted) => ("execution_interrupted", json!({"executed": []})),
            Err(Stopped::Failed(why)) => ("execution_error", json!({"exception_message": why})),
        };
        let node = self.node.lock().take();
        let mut told = details;
        set(&mut told, "timestamp", json!(now()));
        if ended.is_err() {
            set(&mut told, "node_id", json!(node));
        }
        self.tell(studio, kind, told.clone());
        set(&mut told, "prompt_id", json!(self.id));
        let status = json!({"status_str": if ended.is_ok() { "success" } else { "error" },
                            "completed": ended.is_ok(), "messages": [[kind, told]]});
        json!({"prompt": self.shown(), "outputs": outputs, "status": status, "meta": {}})
    }

    async fn run_nodes(
        &self,
        engine: &Arc<Engine>,
        outputs: &mut Map<String, Value>,
    ) -> Result<(), Stopped> {
        for node in &self.graph.nodes {
            *self.node.lock() = Some(node.id.clone());
            let shown = json!({"node": node.id, "display_node": node.id});
            self.tell(&engine.studio, "executing", shown);
            for step in 1..=node.steps {
                tokio::time::sleep(engine.settings.timings.image_step).await;
                let progress = json!({"value": step, "max": node.steps, "node": node.id});
                self.tell(&engine.studio, "progress", progress);
            }
            if node.is_output() {
                let output = self.paint(engine, node).await.map_err(Stopped::Failed)?;
                let shown = json!({"node": node.id, "display_node": node.id, "output": output});
                self.tell(&engine.studio, "executed", shown);
                outputs.insert(node.id.clone(), output);
            }
        }
        Ok(())
    }

    /// The picture that an output is, sent or kept as its node has it.
    async fn paint(&self, engine: &Arc<Engine>, node: &Node) -> Result<Value, String> {
        let graph = self.graph.clone();
        let seed = graph.seed.wrapping_add(engine.settings.seed);
        let original =
            graph.original.as_deref().and_then(|name| engine.studio.picture(&Place::input(name)));
        let painting = tokio::task::spawn_blocking(move || match original {
            Some(original) => picture::paint_over(&original, &graph.prompt, seed),
            None => picture::paint(&graph.prompt, seed, graph.width, graph.height),
        });
        let painted = painting.await.map_err(|error| error.to_string())?;
        let painted = painted.map_err(|error| error.to_string())?;
        if node.class == SOCKET_IMAGE {
            let message = [&PNG_FOLLOWS, painted.as_slice()].concat();
            engine.studio.tell(self.client.as_deref(), Message::Picture(message.into()));
            return Ok(json!({}));
        }
        let kind = if node.class == "PreviewImage" { "temp" } else { "output" };
        let place = engine.studio.next_place(&node.prefix, kind);
        let image = json!({"filename": place.filename, "subfolder": place.subfolder, "type": kind});
        engine.studio.keep_picture(place, Bytes::from(painted));
        Ok(json!({"images": [image]}))
    }
}

/// Milliseconds since 1970, as ComfyUI's messages carry them.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
