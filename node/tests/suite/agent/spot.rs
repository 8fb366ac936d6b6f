//! Machines that are taken away: each cloud's notice becomes a mark, a taint and an event, and passes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api_server::ApiServer;
use super::cluster::Running;
use super::metadata::Metadata;
use super::world::Node;

fn watching(node: &Node, cluster: &ApiServer, metadata: &Metadata) -> Running {
    let mut command = node.agent();
    command
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("FLEXINFER_METADATA_URL", metadata.server.url());
    Running::start(command.args(["--metrics-port", "0", "--spot-interval", "20ms"]))
}

fn marked(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    let tainted = taints.is_some_and(|taints| {
        taints.iter().any(|taint| {
            taint["key"] == "flexinfer.ai/spot-terminating" && taint["effect"] == "NoSchedule"
        })
    });
    let annotated = node["metadata"]["annotations"]["flexinfer.ai/spot-terminating"] == "true";
    assert_eq!(tainted, annotated, "{node:#}");
    tainted
}

fn told_time(node: &Value) -> &Value {
    &node["metadata"]["annotations"]["flexinfer.ai/spot-terminating-at"]
}

/// From quiet to a notice and back, with somebody else's taint on the node.
fn notice_comes_and_goes(metadata: &Metadata) -> Value {
    let theirs = json!({"key": "theirs", "effect": "NoSchedule"});
    let cluster =
        ApiServer::new().with(&json!({"spec": {"taints": [theirs]}})).with_pod("comfyui", 1);
    let node = Node::new();
    let _running = watching(&node, &cluster, metadata);
    metadata.going(true);
    cluster.wait_until("marked", marked);
    let time = told_time(&cluster.node()).clone();
    let begun = Instant::now();
    while cluster.events().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no event");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(cluster.events()[0]["reason"], "SpotTermination");
    assert_eq!(cluster.events()[0]["involvedObject"]["name"], "engine");
    metadata.going(false);
    cluster.wait_until("cleared", |node| !marked(node) && told_time(node).is_null());
    assert_eq!(cluster.node()["spec"]["taints"], json!([theirs]));
    assert_eq!(cluster.events().len(), 1);
    time
}

#[test]
fn ec2s_notice_comes_and_goes_and_its_token_is_renewed() {
    let metadata = Metadata::aws();
    assert_eq!(notice_comes_and_goes(&metadata), "2031-01-02T03:04:05Z");
    // A token of the fake is good for three answers, and there were more.
    assert!(metadata.tokens() >= 2, "{}", metadata.tokens());
}

#[test]
fn azures_notice_for_this_machine_comes_and_goes() {
    let metadata = Metadata::azure();
    assert_eq!(notice_comes_and_goes(&metadata), "2031-01-02T03:04:05Z");
    assert_eq!(metadata.asked("/latest/meta-data"), 0);
}

#[test]
fn googles_notice_comes_and_goes() {
    let metadata = Metadata::gcp();
    assert!(notice_comes_and_goes(&metadata).is_string());
    assert_eq!(metadata.asked("/latest/"), 0);
}

#[test]
fn whoever_answers_everything_is_no_cloud() {
    let (cluster, metadata) = (ApiServer::new(), Metadata::stranger());
    let node = Node::new();
    let _running = watching(&node, &cluster, &metadata);
    // Signs on the node are watched for all the same.
    cluster.change(
        &json!({"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}}),
    );
    cluster.wait_until("marked", marked);
    assert_eq!(
        metadata.asked("instance-action")
            + metadata.asked("preempted")
            + metadata.asked("scheduledevents"),
        0
    );
}

#[test]
fn the_nodes_provider_is_believed_before_anybody_is_asked() {
    let metadata = Metadata::gcp();
    let cluster = ApiServer::new().with(&json!({"spec": {"providerID": "harvester://vm-1"}}));
    let node = Node::new();
    let _running = watching(&node, &cluster, &metadata);
    cluster.change(
        &json!({"metadata": {"annotations": {"harvesterhci.io/maintain-status": "running"}}}),
    );
    cluster.wait_until("marked", marked);
    assert_eq!(metadata.asked("/"), 0);
    cluster
        .change(&json!({"metadata": {"annotations": {"harvesterhci.io/maintain-status": null}}}));
    cluster.wait_until("cleared", |node| !marked(node));
}

#[test]
fn a_node_of_any_clouds_provider_asks_who_its_cloud_is_until_it_hears() {
    let metadata = Metadata::aws();
    metadata.within_reach(false);
    let cluster = ApiServer::new().with(&json!({"spec": {"providerID": "k3s://node-1"}}));
    let node = Node::new();
    let _running = watching(&node, &cluster, &metadata);
    metadata.going(true);
    let begun = Instant::now();
    while metadata.asked("/latest/api/token") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody was asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!marked(&cluster.node()));
    metadata.within_reach(true);
    cluster.wait_until("marked", marked);
}

#[test]
fn a_pod_that_cannot_be_told_yet_keeps_no_other_from_it_and_none_is_told_twice() {
    let metadata = Metadata::aws();
    let cluster = ApiServer::new()
        .with_pod_called("first", "comfyui", 1)
        .with_pod_called("refused", "comfyui", 1)
        .with_pod_called("last", "comfyui", 1)
        .refusing_events_of("refused", 4);
    let node = Node::new();
    let _running = watching(&node, &cluster, &metadata);
    metadata.going(true);
    let told = || {
        let events = cluster.events();
        let name = |event: &Value| event["involvedObject"]["name"].as_str().unwrap().to_owned();
        events.iter().map(name).collect::<Vec<_>>()
    };
    let begun = Instant::now();
    while told().len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", told());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(told(), ["first", "last", "refused"]);
}
