//! The summary at the start: what is served, where, and three things to try.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;

use flexinfer_core::backends::{Api, Backend};
use flexinfer_core::ids::ModelId;
use flexinfer_crds::Model;
use owo_colors::OwoColorize;

use super::{counted, short};

/// One model in the summary.
#[derive(Clone, Debug)]
pub struct Row {
    name: String,
    backend: String,
    group: String,
    state: String,
    priority: i32,
    makes: Makes,
}

/// What somebody would try a model with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Makes {
    Text,
    Images,
    Embeddings,
    /// Nothing that one line of curl could ask for.
    Other,
}

impl Row {
    /// A model that is now in `state`: `asleep`, `loading`, `failed`.
    pub fn new(id: &ModelId, model: &Model, state: impl Into<String>) -> Self {
        let gpu = model.spec.gpu.as_ref();
        Self {
            name: short(id),
            backend: model.spec.backend.clone(),
            group: gpu.and_then(|gpu| gpu.shared.clone()).unwrap_or_default(),
            state: state.into(),
            priority: gpu.and_then(|gpu| gpu.priority).unwrap_or_default(),
            makes: makes(model),
        }
    }
}

fn makes(model: &Model) -> Makes {
    let spec = &model.spec;
    let apis = Backend::named(&spec.backend).map_or(&[][..], Backend::apis);
    let own = spec.capabilities.as_ref().and_then(|capabilities| capabilities.image_generation);
    let only_images = apis.contains(&Api::ImageGenerations) && !apis.contains(&Api::Chat);
    if own.unwrap_or(only_images) {
        return Makes::Images;
    }
    if spec.config.get("embeddings").and_then(serde_json::Value::as_bool) == Some(true) {
        return Makes::Embeddings;
    }
    if apis.is_empty() || apis.contains(&Api::Chat) { Makes::Text } else { Makes::Other }
}

/// The whole summary; shown by its `Display`.
#[derive(Clone, Debug)]
pub struct Banner {
    /// Where requests go.
    pub address: SocketAddr,
    /// Whether they go there under TLS.
    pub secured: bool,
    /// Where metrics and the state of all models are.
    pub admin: SocketAddr,
    /// The models, in the order shown.
    pub rows: Vec<Row>,
    /// Whether to use colours.
    pub colored: bool,
}

impl Display for Banner {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let scheme = if self.secured { "https" } else { "http" };
        let url = format!("{scheme}://{}", reachable(self.address));
        let admin = format!("http://{}", reachable(self.admin));
        let models = counted(self.rows.len(), "model", "models");
        writeln!(formatter, "FlexInfer serves {models} at {}", self.strong(&url))?;
        writeln!(formatter, "Metrics and state: {admin}/metrics, {admin}/debug/models")?;
        writeln!(formatter)?;
        self.table(formatter)?;
        writeln!(formatter)?;
        if self.rows.is_empty() {
            return writeln!(
                formatter,
                "Put a Model's YAML file into the folder; it counts at once."
            );
        }
        writeln!(formatter, "Try:")?;
        for (number, (what, command)) in self.ideas(&url).into_iter().enumerate() {
            writeln!(formatter, "{}. {what}\n   {}", number + 1, self.strong(&command))?;
        }
        Ok(())
    }
}

impl Banner {
    fn table(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        const HEAD: [&str; 4] = ["MODEL", "BACKEND", "GROUP", "STATE"];
        let cells = |row: &Row| {
            let group = if row.group.is_empty() { "-" } else { &row.group };
            [row.name.clone(), row.backend.clone(), group.to_owned(), row.state.clone()]
        };
        let lines: Vec<_> =
            std::iter::once(HEAD.map(str::to_owned)).chain(self.rows.iter().map(cells)).collect();
        let mut widths = [0; 4];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        for line in &lines {
            let padded: Vec<_> =
                line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(formatter, "  {}", padded.join("   ").trim_end())?;
        }
        Ok(())
    }

    /// Three things to try with the models that are there.
    fn ideas(&self, url: &str) -> Vec<(String, String)> {
        let that = |wanted: Makes| self.rows.iter().filter(move |row| row.makes == wanted);
        let mut ideas = Vec::new();
        let mut texts = that(Makes::Text);
        let first = texts.next();
        if let Some(row) = first {
            ideas.push((format!("Chat with {}", row.name), chat(url, &row.name, false)));
            // The other member of a group shows a swap.
            let second = texts
                .find(|other| {
                    let equals = other.group == row.group && other.priority == row.priority;
                    equals && !row.group.is_empty()
                })
                .unwrap_or(row);
            let what = if second.name == row.name {
                format!("Watch {} answer", row.name)
            } else {
                format!("Watch {} answer; it takes the GPU over from {}", second.name, row.name)
            };
            ideas.push((what, chat(url, &second.name, true)));
        }
        if let Some(row) = that(Makes::Images).next() {
            ideas.push((format!("Have {} make an image", row.name), image(url, &row.name)));
        }
        if let Some(row) = that(Makes::Embeddings).next() {
            ideas.push((format!("Embed a text with {}", row.name), embedding(url, &row.name)));
        }
        ideas.push(("List the models".to_owned(), format!("curl {url}/v1/models")));
        ideas.truncate(3);
        ideas
    }

    fn strong(&self, text: &str) -> String {
        if self.colored { text.bold().to_string() } else { text.to_owned() }
    }
}

/// An address that a client on this machine can use: listening everywhere is no place to go to.
fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let loopback: std::net::IpAddr = match address {
        SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(loopback, address.port())
}

fn chat(url: &str, model: &str, stream: bool) -> String {
    let (flag, stream) = if stream { ("-N ", r#", "stream": true"#) } else { ("", "") };
    let message = r#"[{"role": "user", "content": "Hello!"}]"#;
    format!(
        r#"curl {flag}{url}/v1/chat/completions -H 'content-type: application/json' -d '{{"model": "{model}"{stream}, "messages": {message}}}'"#
    )
}

fn image(url: &str, model: &str) -> String {
    format!(
        r#"curl {url}/v1/images/generations -H 'content-type: application/json' -d '{{"model": "{model}", "prompt": "a lighthouse at dusk", "response_format": "b64_json"}}' | sed 's/.*"b64_json": *"\([^"]*\)".*/\1/' | base64 -d > lighthouse.png"#
    )
}

fn embedding(url: &str, model: &str) -> String {
    format!(
        r#"curl {url}/v1/embeddings -H 'content-type: application/json' -d '{{"model": "{model}", "input": "Hello!"}}'"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, spec: &serde_json::Value) -> Row {
        let object = serde_json::json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": { "name": name },
            "spec": spec,
        });
        Row::new(&ModelId::new("default", name), &serde_json::from_value(object).unwrap(), "asleep")
    }

    fn banner(rows: Vec<Row>) -> String {
        let address = "0.0.0.0:8080".parse().unwrap();
        let admin = "127.0.0.1:9090".parse().unwrap();
        Banner { address, secured: false, admin, rows, colored: false }.to_string()
    }

    #[test]
    fn the_quickstart_shows_a_chat_a_swap_and_an_image() {
        let chat = serde_json::json!({ "backend": "simulator", "gpu": { "shared": "gpu0" } });
        let image = serde_json::json!({
            "backend": "simulator", "capabilities": { "imageGeneration": true }
        });
        let rows = vec![row("llama", &chat), row("painter", &image), row("qwen", &chat)];
        insta::assert_snapshot!(banner(rows), @r#"
        FlexInfer serves 3 models at http://127.0.0.1:8080
        Metrics and state: http://127.0.0.1:9090/metrics, http://127.0.0.1:9090/debug/models

          MODEL     BACKEND     GROUP   STATE
          llama     simulator   gpu0    asleep
          painter   simulator   -       asleep
          qwen      simulator   gpu0    asleep

        Try:
        1. Chat with llama
           curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' -d '{"model": "llama", "messages": [{"role": "user", "content": "Hello!"}]}'
        2. Watch qwen answer; it takes the GPU over from llama
           curl -N http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' -d '{"model": "qwen", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}'
        3. Have painter make an image
           curl http://127.0.0.1:8080/v1/images/generations -H 'content-type: application/json' -d '{"model": "painter", "prompt": "a lighthouse at dusk", "response_format": "b64_json"}' | sed 's/.*"b64_json": *"\([^"]*\)".*/\1/' | base64 -d > lighthouse.png
        "#);
    }

    #[test]
    fn one_text_model_and_an_embedder_are_tried_too() {
        let text = serde_json::json!({ "backend": "ollama" });
        let embedder =
            serde_json::json!({ "backend": "llamacpp", "config": { "embeddings": true }});
        let shown = banner(vec![row("gemma", &text), row("nomic", &embedder)]);
        assert!(shown.contains("1. Chat with gemma"), "{shown}");
        assert!(shown.contains("3. Embed a text with nomic"), "{shown}");
    }

    #[test]
    fn an_empty_folder_says_what_to_do() {
        assert!(banner(Vec::new()).contains("Put a Model's YAML file into the folder"));
    }
}
