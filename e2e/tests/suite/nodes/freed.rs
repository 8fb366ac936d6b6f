//! The agent and the scheduler's extender together: memory of GPUs that one measures and the other gives out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use flexinfer_e2e::{Images, Node, images};
use kube::ResourceExt as _;
use serde_json::json;

use super::installed::{Installed, program, scheduled, with_scheduler};
use crate::crds::model;
use crate::shared::eventually;

const TOTAL_MIB: u32 = 24_576;
const MODEL_MIB: u32 = 20_000;

/// Written in the command line of this test's engines and of no other program.
fn seed() -> u64 {
    77_000_000_000 + u64::from(std::process::id())
}

/// An `nvidia-smi` in `folder` that tells of one GPU, of which each engine of this test takes what a model needs.
fn tool(folder: &Path) {
    // What looks for the number has it in its own command line too, but in brackets.
    let seed = seed().to_string();
    let (first, rest) = seed.split_at(1);
    let script = format!(
        "#!/bin/sh\n\
         engines=$(grep -las '[{first}]{rest}' /proc/[0-9]*/cmdline | wc -l)\n\
         echo \"GPU-5ca1ab1e, {TOTAL_MIB}, $((engines * {MODEL_MIB})), 0, 40, [N/A], [N/A], 8.9, NVIDIA GeForce RTX 4090\"\n"
    );
    let path = folder.join("nvidia-smi");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Installed {
    /// Waits until the agent has written that so many MiB are free.
    async fn has_free(&self, mib: u32) {
        let awaited = format!("{mib} MiB are free");
        eventually(&awaited, async || {
            let node = self.node("only").await;
            let free = node.annotations().get("flexinfer.ai/gpu-free-memory").cloned();
            (free? == mib.to_string()).then_some(())
        })
        .await;
    }

    /// A look of the agent that would otherwise come in an hour: it looks when it begins.
    async fn looks(&self) {
        for agent in self.pods("app.kubernetes.io/component=agent").await {
            self.kubectl(&["delete", "pod", &agent.name_any(), "--wait"], "").await;
        }
    }
}

#[tokio::test]
async fn what_a_model_leaves_is_the_next_ones_long_before_the_agents_next_look() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path());
    let folder = folder.path().display();
    let command = format!("PATH={folder}:$PATH exec {} \"$@\"", program("flexinfer-node"));
    let images = with_scheduler(Images::of_this_workspace())
        .with(images::NODE, ["sh", "-c", &command, "node"]);
    let [enabled, image] = scheduled();
    let values = [enabled, image, "agent.probeInterval=1h".to_owned()];
    let nodes = vec![Node::new("only").resource("nvidia.com/gpu", "1")];
    let installed = Installed::on(nodes, images, &values).await;
    for name in ["painter", "sculptor"] {
        let spec = json!({
            "backend": "simulator",
            "gpu": { "count": 1, "shared": "desk", "vramEstimateMB": MODEL_MIB },
            "config": { "seed": seed() },
        });
        installed.apply(&model(name, &spec)).await;
    }
    installed.has_free(TOTAL_MIB).await;
    installed.asks("painter").await;
    installed.looks().await;
    installed.has_free(TOTAL_MIB - MODEL_MIB).await;

    // The GPU itself is free as soon as the other has ended; its memory is when the agent says so.
    installed.asks("sculptor").await;
    assert!(installed.serving("painter").await.is_empty());
    let (_, engine) = eventually("the other serves", async || {
        installed.serving("sculptor").await.into_iter().next()
    })
    .await;
    assert_eq!(engine.spec.unwrap().scheduler_name.as_deref(), Some("flexinfer-scheduler"));
}
