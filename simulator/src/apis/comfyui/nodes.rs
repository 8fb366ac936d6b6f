//! The kinds of nodes that graphs are made of here, as `/object_info` lists them. Graphs may hold others:
//! what is not known does nothing.

use serde_json::{Map, Value, json};

/// A kind of node: its name, what it gives, and whether it is an end of the graph.
struct Class {
    name: &'static str,
    gives: &'static [&'static str],
    is_output: bool,
}

const fn class(name: &'static str, gives: &'static [&'static str]) -> Class {
    Class { name, gives, is_output: false }
}

const fn output(name: &'static str) -> Class {
    Class { name, gives: &[], is_output: true }
}

const CLASSES: &[Class] = &[
    class("CheckpointLoaderSimple", &["MODEL", "CLIP", "VAE"]),
    class("CLIPTextEncode", &["CONDITIONING"]),
    class("EmptyLatentImage", &["LATENT"]),
    class("KSampler", &["LATENT"]),
    class("LoadImage", &["IMAGE", "MASK"]),
    output("PreviewImage"),
    output("SaveImage"),
    output(SOCKET_IMAGE),
    class("VAEDecode", &["IMAGE"]),
    class("VAEEncode", &["LATENT"]),
];

/// The node that sends its picture over the socket instead of keeping it.
pub(super) const SOCKET_IMAGE: &str = "SaveImageWebsocket";

/// Whether nodes of this kind are the ends of a graph.
pub(super) fn is_output(class: &str) -> bool {
    CLASSES.iter().any(|known| known.is_output && known.name == class)
}

/// All of them.
pub(super) fn all() -> Value {
    let entries = CLASSES.iter().map(|class| (class.name.to_owned(), class.told()));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// One of them; nothing where there is none of this name.
pub(super) fn one(name: &str) -> Value {
    let found = CLASSES.iter().find(|class| class.name == name);
    found.map_or_else(|| json!({}), |class| json!({ name: class.told() }))
}

impl Class {
    fn told(&self) -> Value {
        json!({
            "input": {"required": {}},
            "output": self.gives,
            "output_name": self.gives,
            "output_is_list": vec![false; self.gives.len()],
            "name": self.name,
            "display_name": self.name,
            "description": "",
            "category": "simulated",
            "output_node": self.is_output,
        })
    }
}
