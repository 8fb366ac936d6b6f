//! The engine as a program, as the local platform starts it: what it prints, and how it ends.

use std::net::SocketAddr;
use std::process::Command;

use flexinfer_testkit::Program;

use crate::client::BOUND;

/// Cargo builds the examples next to the folder of the test programs.
fn simulate(flags: &[&str]) -> Program {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/simulate");
    Program::start(Command::new(program).args(["--port=0", "--model=m"]).args(flags)).unwrap()
}

async fn address(program: &mut Program) -> SocketAddr {
    let line = program.line("listening on", BOUND).await.unwrap();
    line.trim_start_matches("listening on http://").parse().unwrap()
}

#[tokio::test]
async fn it_tells_its_progress_and_becomes_healthy() {
    let mut program = simulate(&["--load-time=50ms"]);
    let address = address(&mut program).await;
    program.healthy(address, "/health", BOUND).await.unwrap();
    program.line("m is ready", BOUND).await.unwrap();
    let lines = program.lines();
    let progress: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("loading m: ")).collect();
    let tenths: Vec<String> = (1..=10).map(|tenth| format!("{} %", tenth * 10)).collect();
    assert_eq!(progress, tenths);
}

#[tokio::test]
async fn it_reads_the_files_of_its_model() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("weights"), vec![7; 5_000_000]).unwrap();
    let path = folder.path().to_str().unwrap();
    let mut program = simulate(&["--model-path", path]);
    program.line("read 5000000 bytes", BOUND).await.unwrap();
}

#[tokio::test]
async fn sigterm_ends_it_while_it_streams() {
    let mut program = simulate(&["--time-per-token=1h"]);
    let address = address(&mut program).await;
    program.healthy(address, "/health", BOUND).await.unwrap();
    let mut client = flexinfer_testkit::client::Client::connect(address).await.unwrap();
    let body = br#"{"prompt": "x", "stream": true}"#;
    client.post("/v1/completions", body).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 200);
    program.terminate();
    assert!(program.exited(BOUND).await.unwrap().success());
}

#[tokio::test]
async fn it_fails_with_the_reason_when_it_dies_while_loading() {
    let mut program = simulate(&["--load-time=50ms", "--die-while-loading=30%"]);
    let status = program.exited(BOUND).await.unwrap();
    assert!(!status.success());
    program.line("out of memory", BOUND).await.unwrap();
    let mut program = simulate(&["--model-path=/nowhere/model.gguf"]);
    assert!(!program.exited(BOUND).await.unwrap().success());
    program.line("/nowhere/model.gguf", BOUND).await.unwrap();
}
