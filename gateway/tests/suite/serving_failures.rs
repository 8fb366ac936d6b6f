//! Engines that do not come up: who asked is told the reason within the request, and all others go on.

use std::path::Path;
use std::process::Command;

use flexinfer_testkit::eventually;
use futures::future::join_all;
use serde_json::json;

use crate::local_hub::Hub;
use crate::serving_models::{model, scripted, simulated};
use crate::serving_processes::kill;
use crate::serving_world::{BOUND, Home, Serving, assert_ok, assert_refused, bounded, chat};

#[tokio::test]
async fn each_failure_is_told_to_who_asked_while_another_model_goes_on() {
    let files = [
        ("a.yaml", simulated("steady", &json!({}), "")),
        ("b.yaml", model("no-program", "command", &json!({ "command": ["no-such-engine"] }), "")),
        ("c.yaml", simulated("no-file", &json!({}), "  source: file:///no/such/weights.gguf\n")),
        (
            "d.yaml",
            simulated("dies", &json!({ "dieWhileLoading": "50%", "loadTime": "300ms" }), ""),
        ),
        (
            "e.yaml",
            // Long enough for a busy machine to have its output read.
            simulated("hangs", &json!({ "hangWhileLoading": true, "startupTimeout": "15s" }), ""),
        ),
        ("f.yaml", simulated("garbage", &json!({ "garbageHealth": true }), "")),
        (
            "g.yaml",
            simulated("closed", &json!({ "neverOpenPort": true, "startupTimeout": "1s" }), ""),
        ),
    ];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let gateway = Serving::start(&files).await;
    let expected = [
        ("no-program", "ProgramNotFound", "no-such-engine"),
        ("no-file", "BadSource", "/no/such/weights.gguf"),
        ("dies", "OutOfMemory", "50"),
        ("hangs", "LoadTimeout", "40 %"),
        ("garbage", "UnhealthyAnswer", "no HTTP"),
        ("closed", "LoadTimeout", "startupTimeout"),
    ];
    let failing = join_all(expected.map(async |(name, reason, word)| {
        let answer = chat(gateway.address, name).await;
        assert_refused(&answer, 503, "activation_failed", &[reason, word]);
        assert!(answer.head.header("retry-after").is_some());
    }));
    tokio::pin!(failing);
    let mut served = 0;
    loop {
        tokio::select! {
            _ = &mut failing => break,
            answer = gateway.chat("steady") => {
                assert_ok(&answer);
                served += 1;
            }
        }
    }
    assert!(served > 1, "the other model went on meanwhile");
    assert_eq!(gateway.engine_starts("steady"), 1);
}

#[tokio::test]
async fn a_port_that_somebody_else_took_costs_a_second_start_and_no_request() {
    let gateway = Serving::start(&[("llama.yaml", &scripted("llama", "taken-once", "", ""))]).await;
    assert_ok(&gateway.chat("llama").await);
    assert_eq!(gateway.engine_starts("llama"), 2);
}

#[tokio::test]
async fn an_engine_that_is_killed_in_a_stream_cuts_it_honestly_and_is_started_for_the_next() {
    let llama = simulated("llama", &json!({ "timePerToken": "10ms" }), "");
    let mut gateway = Serving::start(&[("llama.yaml", &llama)]).await;
    let mut stream = gateway.stream("llama", 1_000).await;
    kill(gateway.engines()[0]);
    assert!(!stream.finish().await, "it claims to be whole");
    assert!(!stream.text.contains("[DONE]"), "{}", stream.text);
    // Who asks before that may be sent to the dead engine, and nobody can tell whether it had begun.
    gateway.told("llama: failed").await;
    assert_ok(&gateway.chat("llama").await);
    gateway.until_quiet("llama").await;
}

#[tokio::test]
async fn queue_05_a_request_waits_through_killed_engines_where_failures_are_tried_again() {
    let flags =
        ["--backoff-enabled", "--backoff-initial-wait", "50ms", "--backoff-max-retries", "10"];
    let files = [("llama.yaml", &*scripted("llama", "hangs", "", "")), ("hang", "")];
    let gateway = Serving::start_with(&flags, &files).await;
    let mut waiting = gateway.ask("llama").await;
    for round in 1..=3 {
        let hanging = || gateway.log("llama").matches("hanging\n").count() == round;
        assert!(eventually(BOUND, hanging).await, "{}", gateway.log("llama"));
        if round == 3 {
            gateway.home.remove("hang");
        }
        kill(gateway.engines()[0]);
    }
    assert_ok(&bounded(waiting.answer()).await.unwrap());
    assert_eq!(gateway.engine_starts("llama"), 4);
}

/// A file system of a mebibyte, for as long as it lives.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Nothing where this process may not mount.
    fn mount(at: &'a Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(at);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_download_that_fills_the_disk_says_so_and_names_the_place() {
    let hub = Hub::with(&"weights ".repeat(1 << 20));
    let llama = simulated("llama", &json!({}), "  source: HF://org/name:weights.txt\n");
    let home = Home::new(&[("llama.yaml", &llama)]);
    let data = home.data();
    let Some(_disk) = SmallDisk::mount(&data) else {
        println!("skipped: a small disk takes the right to mount");
        return;
    };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let command = home.command(&["--hf-endpoint", &hub.endpoint]);
        let gateway = Serving::run(home, command).await;
        let place = data.join("huggingface");
        let words = ["DiskFull", place.to_str().unwrap()];
        assert_refused(&gateway.chat("llama").await, 503, "activation_failed", &words);
    });
}
