//! What answers to probes mean, and what lines of a streamed pull mean.

use super::*;
use crate::activation::{Reason, Substage};

fn judged(probe: &Probe, status: u16, body: &str) -> Verdict {
    probe.judge(status, body.as_bytes())
}

#[test]
fn llama_server_is_ready_only_when_its_own_health_says_so() {
    let sample = Sample::new("llamacpp", "file:///m.gguf", json!({}));
    let probe = sample.launch(&machine("/m.gguf")).expect("a launch").probe;
    assert_eq!(judged(&probe, 200, r#"{"status":"ok"}"#), Verdict::Ready);
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    assert_eq!(judged(&probe, 503, loading), Verdict::NotYet);
    for (status, body) in [
        (200, "ok"),
        (200, r#"{"status":"loading"}"#),
        (200, "<html>router login</html>"),
        (204, ""),
        (302, ""),
        (404, "not found"),
    ] {
        let verdict = judged(&probe, status, body);
        assert!(matches!(verdict, Verdict::Garbage(_)), "{status} {body}: {verdict:?}");
    }
}

#[test]
fn a_foreign_answer_is_shown_short_and_on_one_line() {
    let probe = Probe::Http { path: "/".into(), expected: Expected::Text("Ollama is running") };
    let body = format!("<html>\n  <body>{}</body>\n</html>", "é".repeat(500));
    let Verdict::Garbage(told) = judged(&probe, 200, &body) else { panic!("not foreign") };
    assert!(told.starts_with("GET / was answered 200 with `<html> <body>ééé"), "{told}");
    assert!(told.chars().count() < 250 && !told.contains('\n'), "{told}");
    assert_eq!(judged(&probe, 200, "Ollama is running"), Verdict::Ready);
}

#[test]
fn comfyui_and_mlc_are_known_by_a_field() {
    let probe = Probe::Http {
        path: "/x".into(),
        expected: Expected::Json { field: "system", value: None },
    };
    assert_eq!(judged(&probe, 200, r#"{"system":{"os":"linux"}}"#), Verdict::Ready);
    assert!(matches!(judged(&probe, 200, "[]"), Verdict::Garbage(_)));
}

#[test]
fn a_pull_tells_how_far_it_is() {
    let line =
        r#"{"status":"pulling 7f4030143c1c","digest":"sha256:7f","total":500,"completed":50}"#;
    let ProgressLine::Progress(progress) = Backend::Ollama.progress(line) else {
        panic!("no progress")
    };
    assert_eq!(progress.substage, Substage::Downloading);
    assert_eq!(progress.done, Some((50, 500)));
    assert_eq!(progress.message, "pulling 7f4030143c1c");
    assert_eq!(Backend::Ollama.progress("not json"), ProgressLine::Nothing);
    assert_eq!(Backend::Vllm.progress(line), ProgressLine::Nothing);
}

#[test]
fn a_pull_that_fails_says_why_within_a_success() {
    for (error, reason) in [
        ("pull model manifest: file does not exist", Reason::BadSource),
        ("write /root/.ollama/x: no space left on device", Reason::DiskFull),
        ("digest mismatch, file must be downloaded again", Reason::DigestMismatch),
        ("max retries exceeded: EOF", Reason::DownloadFailed),
    ] {
        let line = json!({"error": error}).to_string();
        let ProgressLine::Failed(failure) = Backend::Ollama.progress(&line) else {
            panic!("{error} is a failure")
        };
        assert_eq!(failure.reason, reason, "{error}");
        assert!(failure.message.contains(error), "{failure}");
    }
}
