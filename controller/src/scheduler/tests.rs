//! Questions and answers, word for word.

use std::sync::Arc;

use clap::Parser;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::deciding::Extender;
use super::metrics::Metrics;
use super::view::View;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    arguments: Arguments,
}

fn extender(view: View) -> (Extender, Arc<View>) {
    let arguments = Program::parse_from(["scheduler"]).arguments;
    let view = Arc::new(view);
    (Extender::new(&arguments, Arc::clone(&view), Metrics::new().unwrap()), view)
}

fn node(name: &str, free: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "labels": { "flexinfer.ai/gpu.vendor": "NVIDIA", "flexinfer.ai/gpu.vram": "24Gi" },
            "annotations": { "flexinfer.ai/gpu-free-memory": free },
        },
        "spec": {},
    })
}

fn pod(uid: &str, node: Option<&str>, phase: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "models", "name": uid, "uid": uid,
            "annotations": { "flexinfer.ai/gpu.vram-estimate-mb": "20000" },
        },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "engine", "resources": { "limits": { "nvidia.com/gpu": "1" } } }],
        },
        "status": { "phase": phase },
    })
}

fn filter(extender: &Extender, question: &Value) -> Value {
    let answer = extender.filter(question.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn score(extender: &Extender, question: &Value) -> Value {
    let answer = extender.score(question.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn wanting() -> Value {
    pod("new", None, "Pending")
}

/// Whether a second pod with as much memory still fits on `a`, whose 24000 MiB are free by its annotation.
fn fits(extender: &Extender) -> bool {
    let question = json!({ "Pod": wanting(), "NodeNames": ["a"] });
    filter(extender, &question)["NodeNames"] == json!(["a"])
}

#[test]
fn gpu_15_names_are_answered_with_names() {
    let (extender, _) = extender(View::showing(&[node("a", "24000"), node("b", "1000")], &[]));
    let question = json!({ "Pod": wanting(), "Nodes": null, "NodeNames": ["a", "b", "c"] });
    assert_eq!(
        filter(&extender, &question),
        json!({
            "Nodes": null,
            "NodeNames": ["a"],
            "FailedNodes": {
                "b": "insufficient VRAM: have 1000 MB free, need 20000 MB",
                "c": "the extender has not seen this node yet",
            },
            "FailedAndUnresolvableNodes": {},
            "Error": "",
        })
    );
    assert_eq!(
        score(&extender, &question),
        json!([
            { "Host": "a", "Score": 10 }, { "Host": "b", "Score": 0 }, { "Host": "c", "Score": 0 },
        ])
    );
}

#[test]
fn gpu_15_nodes_are_answered_with_the_same_nodes() {
    let (extender, _) = extender(View::showing(&[], &[]));
    let strange = json!({ "metadata": { "name": "s" }, "spec": { "ours": [1, 2] }, "more": true });
    let items = json!([node("a", "24000"), strange]);
    let question = json!({ "Pod": wanting(), "Nodes": { "items": items }, "NodeNames": null });
    let answer = filter(&extender, &question);
    assert_eq!(answer["Nodes"]["items"], json!([node("a", "24000")]));
    assert_eq!(answer["NodeNames"], Value::Null);
    let refused = answer["FailedAndUnresolvableNodes"]["s"].as_str().unwrap();
    assert!(refused.contains("no label flexinfer.ai/gpu.vendor"), "{refused}");
    assert_eq!(score(&extender, &question)[0], json!({ "Host": "a", "Score": 10 }));
}

#[test]
fn gpu_15_nothing_is_answered_with_empty_lists_and_never_null() {
    let (extender, _) = extender(View::showing(&[], &[]));
    for question in [
        json!({ "Pod": wanting() }),
        json!({ "Pod": wanting(), "Nodes": null, "NodeNames": null }),
        json!({ "pod": wanting(), "nodenames": [] }),
    ] {
        let answer = filter(&extender, &question);
        assert_eq!(answer["NodeNames"], json!([]), "{question}");
        assert_eq!(answer["FailedNodes"], json!({}));
        assert_eq!(score(&extender, &question), json!([]));
    }
    let answer = filter(&extender, &json!({ "Pod": wanting(), "Nodes": { "items": null } }));
    assert_eq!(answer["Nodes"]["items"], json!([]));
}

#[test]
fn gpu_15_pods_without_gpus_pass_on_nodes_that_nobody_knows() {
    let (extender, _) = extender(View::new(None));
    let pod =
        json!({ "metadata": { "name": "web" }, "spec": { "containers": [{ "name": "web" }] } });
    let question = json!({ "Pod": pod, "NodeNames": ["x", "y"] });
    assert_eq!(filter(&extender, &question)["NodeNames"], json!(["x", "y"]));
    assert_eq!(score(&extender, &question)[1], json!({ "Host": "y", "Score": 0 }));
}

#[test]
fn until_everything_was_seen_pods_with_gpus_are_refused_by_an_error() {
    let (extender, _) = extender(View::new(None));
    let answer = filter(&extender, &json!({ "Pod": wanting(), "NodeNames": ["a"] }));
    let error = answer["Error"].as_str().unwrap();
    assert!(error.contains("has not seen all nodes and pods and benchmark results"), "{error}");
    assert_eq!(extender.awaited().len(), 3);
}

#[test]
fn what_is_no_question_is_refused() {
    let (extender, _) = extender(View::showing(&[], &[]));
    for body in ["", "{", "[]", "{}", "{\"Pod\": 7}", "{\"Pod\": {}, \"NodeNames\": {}}"] {
        assert!(extender.filter(body.as_bytes()).is_err(), "{body}");
        assert!(extender.score(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn gpu_12_what_is_promised_follows_the_pods_that_are_there() {
    let (extender, view) = extender(View::showing(&[node("a", "24000")], &[]));
    assert!(fits(&extender));
    let bound = pod("first", Some("a"), "Pending");
    view.show_pod(&bound);
    assert!(!fits(&extender), "bound, and not measured yet");
    view.show_pod(&bound);
    view.hide_pod("first");
    assert!(fits(&extender), "shown twice and deleted once");
    view.show_pod(&bound);
    view.show_pod(&pod("first", Some("a"), "Failed"));
    assert!(fits(&extender), "it has ended");
    view.show_pod(&pod("second", None, "Pending"));
    assert!(fits(&extender), "its binding failed, so it has no node");
}

#[test]
fn gpu_12_a_restart_finds_the_promises_again() {
    let pods = [pod("first", Some("a"), "Pending"), pod("gone", Some("a"), "Succeeded")];
    let (extender, view) = extender(View::showing(&[node("a", "24000")], &pods));
    assert!(!fits(&extender));
    view.hide_pod("first");
    assert!(fits(&extender));
}

#[test]
fn the_last_rankings_can_be_looked_at() {
    let (extender, _) = extender(View::showing(&[node("a", "24576")], &[]));
    score(&extender, &json!({ "Pod": wanting(), "NodeNames": ["a", "b"] }));
    let page: Value = serde_json::from_slice(&extender.recent.page().unwrap()).unwrap();
    assert_eq!(page[0]["pod"], "new");
    assert_eq!(page[0]["count"], 2);
    assert_eq!(page[0]["nodes"][0]["node"], "a");
    assert_eq!(page[0]["nodes"][0]["terms"]["vramFree"], json!(10.0));
    assert_eq!(page[0]["nodes"][1]["raw"], Value::Null);
    assert!(!page.to_string().contains("-0.0"), "{page}");
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let (extender, _) = extender(View::showing(&[], &[]));
    for (body, says) in [
        ("garbage", "line 1 column 1"),
        (r#"{ "Pod": { "spec": 5 }, "NodeNames": ["a"] }"#, "line 1 column"),
        (r#"{ "Pod": {}, "NodeNames": "a" }"#, "expected a sequence"),
        ("{}", "no Pod"),
    ] {
        let error = extender.filter(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{body}: {error}");
    }
}

#[test]
fn settings_are_printed_and_bad_numbers_are_refused() {
    let shown = Program::parse_from(["scheduler", "--tps-weight", "0.5"]).arguments.shown();
    assert_eq!((&shown["tps-weight"], &shown["port"]), (&json!(0.5), &json!(8082)));
    for bad in ["NaN", "inf", "much"] {
        assert!(Program::try_parse_from(["scheduler", "--util-weight", bad]).is_err(), "{bad}");
    }
}
