//! Clouds, told apart, and what they say. Answers are composed after each cloud's documentation: EC2
//! "Spot Instance interruption notices", Azure "Scheduled Events for Linux VMs", Compute Engine "Preemption
//! process", and Harvester's "Host management".

use flexinfer_crds::keys;
use serde_json::json;

use super::*;
use crate::hardware::marks::{Node, patch};

const TOKEN: &str = "AQAEALH5Vn3QmMbkT2WHJKJ8mX0s4zL2r3D0Yw==";

fn answer(status: u16, body: &str) -> Answer {
    Answer { status, headers: Vec::new(), body: body.to_owned() }
}

fn google(status: u16, body: &str) -> Answer {
    let headers = vec![("metadata-flavor".to_owned(), "Google".to_owned())];
    Answer { status, headers, body: body.to_owned() }
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn told(reading: &Reading) -> String {
    let Reading::Noticed(notice) = reading else { panic!("{reading:?}") };
    notice.at.to_string()
}

const AZURE: &str =
    r#"{"compute": {"name": "gpu-1", "azEnvironment": "AzurePublicCloud", "vmId": "02aab8a4"}}"#;

#[test]
fn no_cloud_takes_anothers_answers_for_its_own() {
    // What each answers to a question that is not its own: a status below 500 in every case.
    let strangers = [
        answer(404, "<html>not found</html>"),
        answer(405, ""),
        answer(400, r#"{"error": "Bad request. Required metadata header not specified"}"#),
        answer(403, "Missing required header Metadata-Flavor"),
        answer(200, "<!doctype html><title>captive portal</title>"),
        answer(200, ""),
    ];
    for stranger in &strangers {
        assert_eq!(aws::token(stranger), None, "{stranger:?}");
        assert!(!aws::is_identity(stranger), "{stranger:?}");
        assert_eq!(azure::identity(stranger), None, "{stranger:?}");
        assert!(!gcp::is_identity(stranger), "{stranger:?}");
    }
    assert!(!gcp::is_identity(&answer(200, "4520031799277581759")));
    assert!(gcp::is_identity(&google(200, "4520031799277581759")));
    assert_eq!(azure::identity(&answer(200, AZURE)).as_deref(), Some("gpu-1"));
    assert_eq!(aws::token(&answer(200, TOKEN)), Some(TOKEN));
    assert!(aws::is_identity(&answer(200, "i-0123456789abcdef0")));
}

#[test]
fn the_provider_of_a_node_names_its_cloud() {
    assert_eq!(by_provider("aws:///eu-west-1a/i-0123"), Provider::Cloud(Cloud::Aws));
    assert_eq!(by_provider("azure:///subscriptions/x"), Provider::Cloud(Cloud::Azure));
    assert_eq!(by_provider("gce://project/zone/name"), Provider::Cloud(Cloud::Gcp));
    assert_eq!(by_provider("harvester://vm"), Provider::Silent);
    for of_any_cloud in ["", "k3s://gpu-1", "i-0123"] {
        assert_eq!(by_provider(of_any_cloud), Provider::Unknown, "{of_any_cloud}");
    }
}

#[test]
fn ec2_tells_what_and_when() {
    let body = r#"{"action": "terminate", "time": "2026-01-02T03:06:00Z"}"#;
    assert_eq!(told(&aws::notice(&answer(200, body), now())), "2026-01-02T03:06:00Z");
    assert_eq!(
        told(&aws::notice(&answer(200, r#"{"action": "stop"}"#), now())),
        "2026-01-02T03:06:05Z"
    );
    assert_eq!(aws::notice(&answer(404, ""), now()), Reading::Quiet);
    assert_eq!(aws::notice(&answer(401, ""), now()), Reading::TokenRefused);
    for unclear in [answer(503, ""), answer(200, "terminate"), answer(200, r#"{"action": "none"}"#)]
    {
        assert!(matches!(aws::notice(&unclear, now()), Reading::Unclear(_)), "{unclear:?}");
    }
}

#[test]
fn azure_evicts_the_machine_that_it_names_and_no_other() {
    let page = |kind: &str, machine: &str, when: &str| {
        let event = json!({"EventId": "1", "EventType": kind, "ResourceType": "VirtualMachine",
            "Resources": [machine], "EventStatus": "Scheduled", "NotBefore": when});
        answer(200, &json!({"DocumentIncarnation": 2, "Events": [event]}).to_string())
    };
    let when = "Fri, 02 Jan 2026 03:05:00 GMT";
    assert_eq!(
        told(&azure::notice(&page("Preempt", "gpu-1", when), "gpu-1", now())),
        "2026-01-02T03:05:00Z"
    );
    assert_eq!(
        told(&azure::notice(&page("Preempt", "gpu-1", ""), "gpu-1", now())),
        "2026-01-02T03:04:05Z"
    );
    assert_eq!(azure::notice(&page("Preempt", "gpu-2", when), "gpu-1", now()), Reading::Quiet);
    assert_eq!(azure::notice(&page("Freeze", "gpu-1", when), "gpu-1", now()), Reading::Quiet);
    let quiet = answer(200, r#"{"DocumentIncarnation": 1, "Events": []}"#);
    assert_eq!(azure::notice(&quiet, "gpu-1", now()), Reading::Quiet);
    assert!(matches!(azure::notice(&answer(429, ""), "gpu-1", now()), Reading::Unclear(_)));
}

#[test]
fn google_preempts_half_a_minute_after_it_says_so() {
    assert_eq!(told(&gcp::notice(&google(200, "TRUE"), now())), "2026-01-02T03:04:35Z");
    assert_eq!(gcp::notice(&google(200, "FALSE\n"), now()), Reading::Quiet);
    assert!(matches!(gcp::notice(&answer(200, "TRUE"), now()), Reading::Unclear(_)));
}

fn annotated(pairs: &[(&str, &str)]) -> Node {
    let annotations =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Node { annotations, ..Node::default() }
}

#[test]
fn harvester_empties_a_host_before_its_maintenance() {
    let running = annotated(&[("harvesterhci.io/maintain-status", "running")]);
    assert!(matches!(harvester::notice(&running, now()), Reading::Noticed(_)));
    let requested = annotated(&[("harvesterhci.io/drain-requested", "true")]);
    assert!(matches!(harvester::notice(&requested, now()), Reading::Noticed(_)));
    assert_eq!(harvester::notice(&Node::default(), now()), Reading::Quiet);
}

fn signs_on(node: &Node) -> Reading {
    let read = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
    signs::notice(node, &read(&signs::TAINTS), &read(&signs::ANNOTATIONS), now())
}

#[test]
fn taints_and_annotations_of_others_are_signs() {
    assert_eq!(signs_on(&Node::default()), Reading::Quiet);
    let tainted = Node {
        taints: vec![json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"})],
        ..Node::default()
    };
    assert_eq!(told(&signs_on(&tainted)), "2026-01-02T03:06:05Z");
    assert_eq!(signs_on(&annotated(&[(keys::SPOT_TERMINATING, "false")])), Reading::Quiet);
}

#[test]
fn a_mark_that_others_set_is_seen_and_left_to_them() {
    let node = annotated(&[(keys::SPOT_TERMINATING, "true")]);
    let reading = signs_on(&node);
    assert!(matches!(&reading, Reading::Noticed(notice) if notice.marked_by_others), "{reading:?}");
    assert_eq!(patch(&node, &mark(&reading, &node)), None);
    assert_eq!(patch(&node, &mark(&Reading::Quiet, &node)), None);
}

#[test]
fn the_agents_own_mark_is_no_sign_and_goes_when_the_notice_passes() {
    let notice = Reading::Noticed(Notice::new("EC2 will stop this spot instance", now()));
    let patched = patch(&Node::default(), &mark(&notice, &Node::default())).unwrap();
    assert_eq!(
        patched["metadata"]["annotations"][keys::SPOT_TERMINATING_AT],
        "2026-01-02T03:04:05Z"
    );
    let mut node = annotated(&[
        (keys::SPOT_TERMINATING, "true"),
        (keys::SPOT_TERMINATING_AT, "2026-01-02T03:04:05Z"),
    ]);
    node.taints = patched["spec"]["taints"].as_array().unwrap().clone();

    assert_eq!(signs_on(&node), Reading::Quiet);
    let again = Reading::Noticed(Notice::new("again", later(now(), 60)));
    assert_eq!(patch(&node, &mark(&again, &node)), None, "the first time that was told holds");
    assert_eq!(patch(&node, &mark(&Reading::Unclear(String::new()), &node)), None);
    let cleared = patch(&node, &mark(&Reading::Quiet, &node)).unwrap();
    assert_eq!(cleared["spec"]["taints"], json!([]));
    assert_eq!(cleared["metadata"]["annotations"][keys::SPOT_TERMINATING], json!(null));
}
