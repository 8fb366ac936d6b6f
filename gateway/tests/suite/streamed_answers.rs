//! Forms that ask for a stream: their answers are streams like those to JSON.

use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin};

use crate::world::{BOUND, World, model};

const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const TYPE: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=cut");
const MODEL: &str = "Content-Disposition: form-data; name=\"model\"";
const STREAM: &str = "Content-Disposition: form-data; name=\"stream\"";
const FILE: &str = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"";

fn part(headers: &str, content: &str) -> String {
    format!("--cut\r\n{headers}\r\n\r\n{content}\r\n")
}

fn form(parts: &[String]) -> Vec<u8> {
    [parts.concat(), "--cut--\r\n".to_owned()].concat().into_bytes()
}

/// An engine that sends an event, then breaks off; or ends, with what it took, if its answer is to be whole.
async fn transcriber(whole: bool) -> Origin {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let event = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"a\"}\n\n";
    let done = "data: {\"type\":\"transcript.text.done\",\"text\":\"a\",\"usage\":{\"type\":\"tokens\",\"input_tokens\":14,\"output_tokens\":5,\"total_tokens\":19}}\n\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let (begun, done) = ([head, &chunk(event)].concat(), chunk(done) + "0\r\n\r\n");
    Origin::start(move |_| {
        let end = if whole { Action::Write(done.clone().into()) } else { Action::Close };
        vec![Action::Write(begun.clone().into()), end]
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_form_that_asks_for_a_stream_is_treated_as_one_wherever_its_part_stands() {
    let engine = transcriber(true).await;
    let world = World::new(engine.address, vec![model("ear", None)]);
    let (named, file) = (part(MODEL, "ear"), part(FILE, "RIFF"));
    let long = part(FILE, &"x".repeat(3 << 20));
    let asked = |yes: &str| part(STREAM, yes);
    let mut client = Client::connect(world.address).await.unwrap();
    let accepts = [TYPE, ("Accept-Encoding", "gzip")];
    for (parts, stream) in [
        (vec![named.clone(), asked("true"), file.clone()], true),
        (vec![file.clone(), named.clone(), asked("True")], true),
        (vec![asked("1"), named.clone(), file.clone()], true),
        (vec![named.clone(), asked("true"), long.clone()], true),
        (vec![long, named.clone(), asked("true")], true),
        (vec![named.clone(), asked("false"), file.clone()], false),
        (vec![named, file], false),
    ] {
        client.send(&request("POST", TRANSCRIPTIONS, &accepts, &form(&parts))).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let seen = engine.requests().pop().unwrap();
        assert!(seen.body == form(&parts));
        // A compressed stream would be held back, and of a compressed answer no tokens be counted.
        let accepted = seen.head.header("accept-encoding");
        assert_eq!(accepted, Some("identity"), "{stream} {}", parts.concat().len());
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    for (stream, count) in [(true, 5), (false, 2)] {
        let line = format!(
            r#"flexinfer_proxy_completions_total{{model="ear",stream="{stream}"}} {count}"#
        );
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    let sums = r#"flexinfer_proxy_request_completion_tokens_sum{model="ear"} 35"#;
    assert!(page.lines().any(|found| found == sums), "{page}");
}

#[tokio::test]
async fn a_stream_that_a_form_asked_for_ends_in_an_error_event_when_its_engine_breaks_off() {
    let engine = transcriber(false).await;
    let world = World::new(engine.address, vec![model("ear", None)]);
    let parts = [part(MODEL, "ear"), part(STREAM, "true"), part(FILE, "RIFF")];
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", TRANSCRIPTIONS, &[TYPE], &form(&parts))).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.head.header("x-accel-buffering"), Some("no"));
    let events = answer.text();
    assert!(events.contains("transcript.text.delta"), "{events}");
    let last = events.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("data: {\"error\":"), "{events}");
    assert_eq!(engine.requests().len(), 1, "it was asked twice");
}
