//! What the README promises: the example folder, asked as a newcomer would.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::serving_world::{Home, Serving, assert_ok};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/quickstart");

/// The example, copied, so that a test can claim its folder for itself.
fn example() -> Home {
    let home = Home::new(&[]);
    for entry in fs::read_dir(Path::new(EXAMPLE)).unwrap().flatten() {
        fs::copy(entry.path(), home.models().join(entry.file_name())).unwrap();
    }
    home
}

#[tokio::test]
async fn the_quickstart_lists_chats_streams_and_paints() {
    let home = example();
    let command = home.command(&[]);
    let began = Instant::now();
    let mut gateway = Serving::run(home, command).await;
    println!("served after {:?}", began.elapsed());

    let listed = gateway.get("/v1/models").await.json();
    let names: Vec<_> = listed["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(names, ["llama", "painter", "qwen"]);

    let picture =
        json!({ "model": "painter", "prompt": "a lighthouse", "response_format": "b64_json" });
    let (llama, painted) =
        tokio::join!(gateway.chat("llama"), gateway.post("/v1/images/generations", &picture));
    assert_ok(&llama);
    assert_eq!(llama.json()["model"], "llama");
    assert_ok(&painted);
    assert!(painted.json()["data"][0]["b64_json"].as_str().unwrap().len() > 100);

    // The two of the group in turn: each just works.
    assert!(gateway.stream("qwen", 8).await.finish().await);
    assert_ok(&gateway.chat("gpt-4o-mini").await);
    assert_ok(&gateway.chat("llama").await);

    for line in [
        "llama: waking, 1 request waiting",
        "llama: ready in",
        "painter: ready in",
        "llama → qwen: swapping",
        "llama: stopped",
        "qwen: ready in",
        "qwen → llama: swapping",
        "1 request goes out",
    ] {
        gateway.told(line).await;
    }
}
