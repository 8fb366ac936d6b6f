//! A graph of nodes: the order they run in, and what of it decides how the picture looks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::nodes;
use super::refused::Refused;
use crate::picture::LONGEST_SIDE;
use crate::random::stable_hash;

const SIDE: u32 = 256;
const STEPS: u64 = 20;
const MOST_STEPS: u64 = 1_000;

/// A graph that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    /// In the order they run.
    pub(super) nodes: Vec<Node>,
    /// The texts in it.
    pub(super) prompt: String,
    pub(super) seed: u64,
    pub(super) width: u32,
    pub(super) height: u32,
    /// The uploaded picture to begin with, if one is loaded.
    pub(super) original: Option<String>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) class: String,
    /// How many steps it takes that are told of; most nodes take none.
    pub(super) steps: u64,
    /// What the names of its pictures begin with, perhaps with a folder.
    pub(super) prefix: String,
}

impl Node {
    pub(super) fn is_output(&self) -> bool {
        nodes::is_output(&self.class)
    }
}

impl Graph {
    /// Reads what a client sent; `is_there` says whether a picture was uploaded.
    pub(super) fn read(prompt: &Value, is_there: impl Fn(&str) -> bool) -> Result<Self, Refused> {
        let Some(entries) = prompt.as_object().filter(|entries| !entries.is_empty()) else {
            return Err(Refused::graph("no_prompt", "No prompt provided", "No prompt provided"));
        };
        let mut ordered = Ordered { entries: prompt, nodes: Vec::new(), seen: BTreeSet::new() };
        for (id, node) in entries {
            if nodes::is_output(class_of(node)) {
                ordered.add(id)?;
            }
        }
        if ordered.nodes.is_empty() {
            return Err(Refused::graph("prompt_no_outputs", "Prompt has no outputs", ""));
        }
        let input =
            |name: &str| entries.values().find_map(|node| node.get("inputs")?.get(name)?.as_u64());
        let side = |name| {
            let side = input(name).and_then(|side| u32::try_from(side).ok()).unwrap_or(SIDE);
            side.clamp(1, LONGEST_SIDE)
        };
        let texts = entries.values().filter_map(|node| node.get("inputs")?.get("text")?.as_str());
        let prompt_text = texts.collect::<Vec<_>>().join(" ");
        let original = loaded_picture(prompt, &ordered.nodes, is_there)?;
        Ok(Self {
            seed: input("seed")
                .or_else(|| input("noise_seed"))
                .unwrap_or_else(|| stable_hash(prompt.to_string().as_bytes(), 0)),
            width: side("width"),
            height: side("height"),
            prompt: prompt_text,
            original,
            nodes: ordered.nodes,
        })
    }
}

fn class_of(node: &Value) -> &str {
    node.get("class_type").and_then(Value::as_str).unwrap_or_default()
}

fn loaded_picture(
    prompt: &Value,
    nodes: &[Node],
    is_there: impl Fn(&str) -> bool,
) -> Result<Option<String>, Refused> {
    let Some(node) = nodes.iter().find(|node| node.class == "LoadImage") else { return Ok(None) };
    let image = prompt.get(&node.id).and_then(|node| node.get("inputs")?.get("image")?.as_str());
    let image = image.unwrap_or_default();
    if !is_there(image) {
        return Err(Refused::picture_missing(&node.id, &node.class, image));
    }
    Ok(Some(image.to_owned()))
}

/// Nodes after all those that they take something from.
struct Ordered<'g> {
    entries: &'g Value,
    nodes: Vec<Node>,
    seen: BTreeSet<String>,
}

impl Ordered<'_> {
    /// Adds a node and what it needs. A node that is needed by what it needs comes once: real graphs
    /// have no circles, and ours end.
    fn add(&mut self, output: &str) -> Result<(), Refused> {
        let mut open = vec![(output.to_owned(), false)];
        while let Some((id, is_fed)) = open.pop() {
            let Some(entry) = self.entries.get(&id) else {
                let details = format!("Node {id} is needed and not there");
                return Err(Refused::graph("invalid_prompt", "Cannot execute", &details));
            };
            if is_fed {
                self.nodes.push(node(id, entry));
                continue;
            }
            if !self.seen.insert(id.clone()) {
                continue;
            }
            open.push((id, true));
            let inputs = entry.get("inputs").and_then(Value::as_object);
            open.extend(inputs.into_iter().flatten().filter_map(|(_, input)| {
                // A link is the id of a node and the number of what it gives.
                let (from, which) = (input.get(0)?.as_str()?, input.get(1)?);
                which.is_u64().then(|| (from.to_owned(), false))
            }));
        }
        Ok(())
    }
}

fn node(id: String, entry: &Value) -> Node {
    let class = class_of(entry).to_owned();
    let steps = entry.get("inputs").and_then(|inputs| inputs.get("steps")?.as_u64());
    let steps = if class.contains("Sampler") { steps.unwrap_or(STEPS).min(MOST_STEPS) } else { 0 };
    let prefix = entry.get("inputs").and_then(|inputs| inputs.get("filename_prefix")?.as_str());
    let prefix = prefix.unwrap_or(if class == "PreviewImage" { "ComfyUI_temp" } else { "ComfyUI" });
    Node { id, class, steps, prefix: prefix.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_run_after_what_they_are_fed_by_and_once() {
        let prompt = json!({
            "1": {"class_type": "SaveImage", "inputs": {"images": ["4", 0]}},
            "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red boat"}},
            "3": {"class_type": "KSampler", "inputs": {"seed": 7, "steps": 3, "positive": ["2", 0],
                                                       "negative": ["2", 0]}},
            "4": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0]}},
            "9": {"class_type": "KSampler", "inputs": {}},
        });
        let graph = Graph::read(&prompt, |_| false).unwrap();
        let order: Vec<_> = graph.nodes.iter().map(|node| node.id.as_str()).collect();
        assert_eq!(order, ["2", "3", "4", "1"], "and 9 leads nowhere");
        assert_eq!((graph.nodes[1].steps, graph.seed, graph.width), (3, 7, SIDE));
        assert_eq!(graph.prompt, "a red boat");
    }

    #[test]
    fn graphs_that_cannot_be_run_are_refused() {
        let kind = |prompt: Value| match Graph::read(&prompt, |_| false) {
            Err(Refused::Graph { kind, .. }) => kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(json!({})), "no_prompt");
        assert_eq!(kind(json!({"1": {"class_type": "KSampler"}})), "prompt_no_outputs");
        let dangling = json!({"1": {"class_type": "SaveImage", "inputs": {"images": ["8", 0]}}});
        assert_eq!(kind(dangling), "invalid_prompt");
        let missing = json!({
            "1": {"class_type": "SaveImage", "inputs": {"images": ["2", 0]}},
            "2": {"class_type": "LoadImage", "inputs": {"image": "nothing.png"}},
        });
        assert_eq!(kind(missing.clone()), "prompt_outputs_failed_validation");
        assert!(Graph::read(&missing, |image| image == "nothing.png").is_ok());
    }

    #[test]
    fn a_circle_ends() {
        let circle = json!({
            "1": {"class_type": "SaveImage", "inputs": {"images": ["2", 0]}},
            "2": {"class_type": "KSampler", "inputs": {"latent": ["2", 0], "image": ["1", 0]}},
        });
        assert_eq!(Graph::read(&circle, |_| false).unwrap().nodes.len(), 2);
    }
}
