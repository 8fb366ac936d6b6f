//! `bench` as a program, against simulated engines whose speed is set.

use std::process::Output;
use std::time::Duration;

use flexinfer_testkit::origin::{Action, Origin, answer};
use flexinfer_testkit::simulator::{Running, Settings, Simulator, Timings};
use serde_json::Value;

use crate::world::{program, text};

async fn engine(timings: Timings) -> Running {
    let settings = Settings { timings, ..Settings::default() };
    let running = Simulator::start(settings).await.unwrap();
    running.ready().await.unwrap();
    running
}

async fn bench(url: &str, arguments: &'static str) -> Output {
    let mut command = program();
    command.args(["bench", "--model", "simulated", "--min-duration", "0s"]);
    command.args(arguments.split_whitespace()).env("PROXY_URL", url);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_counted_and_the_phases_are_kept_apart() {
    let token = Duration::from_millis(10);
    let first_token = Duration::from_millis(200);
    let engine = engine(Timings { token, first_token, ..Timings::default() }).await;
    let flags = "--json --warmup-iterations 1 --iterations 2 --batch-size 40 --backend vllm";
    let report = json(&bench(&engine.url(), flags).await);
    let level = &report["levels"][0];
    assert_eq!(level["samples"], 2);
    assert_eq!(level["completion_tokens"], 80);
    assert_eq!(report["backend"], "vllm");
    // The machine may be slow; faster than the engine is set to be, nothing can be.
    let decode = level["decode_tokens_per_second"].as_f64().unwrap();
    assert!(decode > 1.0 && decode < 103.0, "{decode}");
    assert!(level["first_token_seconds"]["median"].as_f64().unwrap() >= 0.2);
    let overall = level["tokens_per_second"].as_f64().unwrap();
    assert!(overall < decode, "the time to the first token counts: {overall}");
    let asked = engine.requests().len();
    assert_eq!(asked, 4, "one to wake it, one to warm it up, two to measure");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_has_a_row_for_each_level() {
    let engine = engine(Timings::default()).await;
    let flags = "--concurrency 1,3 --iterations 2 --warmup-iterations 0 --batch-size 5";
    let output = bench(&engine.url(), flags).await;
    assert!(output.status.success(), "{}", text(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().take(3).collect::<Vec<_>>());
    let rows = rows.collect::<Vec<_>>();
    assert!(rows.contains(&vec!["1", "2", "0"]), "{table}");
    assert!(rows.contains(&vec!["3", "6", "0"]), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_and_vectors_are_measured_in_their_own_units() {
    let engine = engine(Timings::default()).await;
    let flags = "--json --operation images --iterations 2 --warmup-iterations 0";
    let pictures = json(&bench(&engine.url(), flags).await);
    assert!(pictures["levels"][0]["images_per_minute"].as_f64().unwrap() > 0.0);
    assert_eq!(pictures["levels"][0]["decode_tokens_per_second"], Value::Null);
    let flags = "--json --backend tei --iterations 2 --warmup-iterations 0";
    let vectors = json(&bench(&engine.url(), flags).await);
    assert!(vectors["levels"][0]["completion_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_sleeps_is_waited_for() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n",
    );
    let gateway = Origin::start(move |request| {
        let busy = answer(503, &[("Retry-After", "0")], b"{}");
        let ready = answer(200, &[("Content-Type", "text/event-stream")], stream.as_bytes());
        let nth = request.index + request.connection;
        vec![Action::Write(if nth < 2 { busy } else { ready })]
    });
    let gateway = gateway.await.unwrap();
    let report = json(&bench(&gateway.url(), "--json --iterations 1 --backend vllm").await);
    assert_eq!(report["levels"][0]["failed"], 0);
    assert_eq!(gateway.requests().len(), 2 + 1 + 2 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_is_the_one_that_the_gateway_names_where_nobody_else_does() {
    let gateway = Origin::start(|request| {
        let body = match request.head.first_line.as_str() {
            "GET /v1/models/simulated HTTP/1.1" => r#"{ "metadata": { "backend": "tei" } }"#,
            _ => {
                r#"{ "data": [], "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 1 } }"#
            }
        };
        let json = [("Content-Type", "application/json")];
        vec![Action::Write(answer(200, &json, body.as_bytes()))]
    });
    let gateway = gateway.await.unwrap();
    let once = "--json --iterations 1 --warmup-iterations 0";
    assert_eq!(json(&bench(&gateway.url(), once).await)["backend"], "tei");
    let asked = gateway.requests().into_iter().map(|request| request.head.first_line);
    let asked: Vec<_> = asked.filter(|line| !line.starts_with("GET")).collect();
    assert!(asked.iter().all(|line| line.contains("/v1/embeddings")), "{asked:?}");
    let said = "--json --iterations 1 --warmup-iterations 0 --backend vllm";
    assert_eq!(json(&bench(&gateway.url(), said).await)["backend"], "vllm");
    let elsewhere = engine(Timings::default()).await;
    let report = json(&bench(&elsewhere.url(), once).await);
    assert_eq!(report["backend"], "ollama", "no gateway of ours: as the original");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_measured_is_said_at_once() {
    let missing = Origin::start(|_| vec![Action::Write(answer(404, &[], b"no such model"))]);
    let missing = missing.await.unwrap();
    let output = bench(&missing.url(), "").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("no such model"), "{}", text(&output));
    let silent = Origin::answering("{}").await.unwrap();
    let output = bench(&silent.url(), "").await;
    assert!(text(&output).contains("without `usage`"), "{}", text(&output));
    for nowhere in ["nonsense", "localhost:8080", "file:///etc"] {
        let output = bench(nowhere, "").await;
        assert!(text(&output).contains("http://host:port"), "{nowhere}: {}", text(&output));
    }
}
