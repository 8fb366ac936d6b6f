//! An engine that is ready and a client that speaks to it.

use std::sync::Once;
use std::time::{Duration, Instant};

use flexinfer_simulator::{Running, Settings, Simulator};
use reqwest::{Client, Response};
use serde_json::Value;

/// Longer than anything here takes on a slow machine.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) engine: Running,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn new(settings: Settings) -> Self {
        let world = Self::loading(settings).await;
        world.engine.ready().await.unwrap();
        world
    }

    /// Does not wait until the model is loaded.
    pub(crate) async fn loading(settings: Settings) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            rustls::crypto::ring::default_provider().install_default().unwrap();
        });
        let engine = Simulator::start(settings).await.unwrap();
        Self { engine, client: Client::builder().no_proxy().build().unwrap() }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.client.get(self.engine.url() + path).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        self.ask(path, body).send().await.unwrap()
    }

    pub(crate) fn ask(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.client
            .post(self.engine.url() + path)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Status and JSON of an answer.
    pub(crate) async fn json(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.post(path, body).await;
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }

    /// Sends a form of parts that are texts or, with a file name, files.
    pub(crate) async fn send_form(&self, path: &str, parts: &[(&str, &str, &[u8])]) -> Response {
        let mut body = Vec::new();
        for (name, file, content) in parts {
            body.extend_from_slice(b"--cut\r\ncontent-disposition: form-data; ");
            body.extend_from_slice(format!("name=\"{name}\"").as_bytes());
            if !file.is_empty() {
                body.extend_from_slice(format!("; filename=\"{file}\"").as_bytes());
            }
            body.extend_from_slice(b"\r\n\r\n");
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--cut--\r\n");
        let request = self.client.post(self.engine.url() + path);
        let kind = "multipart/form-data; boundary=cut";
        request.header("content-type", kind).body(body).send().await.unwrap()
    }

    /// Names and contents of the events of a stream.
    pub(crate) async fn events(&self, path: &str, body: &Value) -> Vec<(String, Value)> {
        let response = self.post(path, body).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        events(&response.text().await.unwrap())
    }
}

pub(crate) fn events(text: &str) -> Vec<(String, Value)> {
    text.split("\n\n")
        .filter(|event| !event.is_empty())
        .map(|event| {
            let mut name = String::new();
            let mut content = Value::Null;
            for line in event.lines() {
                match line.split_once(": ") {
                    Some(("event", value)) => value.clone_into(&mut name),
                    Some(("data", "[DONE]")) => content = Value::from("[DONE]"),
                    Some(("data", value)) => content = serde_json::from_str(value).unwrap(),
                    _ => panic!("not a line of an event: {line:?}"),
                }
            }
            (name, content)
        })
        .collect()
}

/// Looks at a state until it is true, or fails.
pub(crate) async fn reach(what: &str, state: impl Fn() -> bool) {
    let begun = Instant::now();
    while !state() {
        assert!(begun.elapsed() < BOUND, "not reached: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
