//! Pods land where the formula says.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::extender::Extender;
use super::{Stage, extender};
use crate::shared::eventually;

/// What is different of each node of a situation, and where the pod belongs.
struct Situation {
    name: &'static str,
    nodes: Vec<(&'static str, Value)>,
    pod: Value,
    belongs: &'static str,
}

fn annotated(key: &str, value: &str) -> Value {
    json!({ "annotations": { format!("flexinfer.ai/{key}"): value } })
}

fn labelled(key: &str, value: &str) -> Value {
    json!({ "labels": { format!("flexinfer.ai/{key}"): value } })
}

fn situation(
    name: &'static str,
    belongs: (&'static str, Value),
    other: (&'static str, Value),
) -> Situation {
    Situation { name, belongs: belongs.0, nodes: vec![other, belongs], pod: json!({}) }
}

fn situations() -> Vec<Situation> {
    let free = |memory| annotated("gpu-free-memory", memory);
    let plain = || json!({});
    let mut two_gpus = situation(
        "two-gpus",
        ("both-free", annotated("gpu-free-memory.each", "21000,21000")),
        ("one-full", annotated("gpu-free-memory.each", "1000,24000")),
    );
    two_gpus.pod = json!({ "spec": { "containers": [{ "name": "engine", "image": "engine",
        "resources": { "limits": { "nvidia.com/gpu": "2" } } }] } });
    vec![
        situation("room", ("freer", free("45000")), ("fuller", free("30000"))),
        situation(
            "use",
            ("idle", annotated("gpu.util", "5.00")),
            ("busy", annotated("gpu.util", "95.00")),
        ),
        situation("cost", ("cheap", annotated("cost", "1")), ("dear", annotated("cost", "90"))),
        situation(
            "cache",
            ("calm", annotated("kv-cache-usage", "0.80")),
            ("pressed", annotated("kv-cache-usage", "0.99")),
        ),
        // Twice as fast makes up for most of the memory.
        situation(
            "speed",
            (
                "fast",
                json!({ "labels": { "flexinfer.ai/gpu.arch": "sm_90" },
            "annotations": { "flexinfer.ai/gpu-free-memory": "25000" } }),
            ),
            ("slow", plain()),
        ),
        situation("maker", ("nvidia", free("25000")), ("amd", labelled("gpu.vendor", "AMD"))),
        situation("age", ("newer", free("25000")), ("maxwell", labelled("gpu.arch", "sm_52"))),
        situation(
            "spot",
            ("stays", free("25000")),
            ("leaves", annotated("spot-terminating", "true")),
        ),
        situation("text", ("clear", free("25000")), ("garbage", free("{\"v\":2,"))),
        situation(
            "health",
            ("good", free("25000")),
            ("unknown", annotated("gpu-health", "unknown: no answer")),
        ),
        situation(
            "each",
            ("one-free", annotated("gpu-free-memory.each", "500,21000")),
            ("halves", annotated("gpu-free-memory.each", "19000,19000")),
        ),
        two_gpus,
    ]
}

/// The speeds of llama on vLLM; each key is the beginning of
/// `printf 'vllm|llama|vendor=NVIDIA,arch=sm_89,vram=24Gi,count=2,int4=true' | sha256sum`.
fn speeds() -> Value {
    json!({ "bench_b666b3e00be4b3e541157b591c6d298a": "40.00", "bench_a531772c073656f584bb440908a92157": "80.00" })
}

async fn stage() -> (Stage, Extender) {
    let mut stage = Stage::new().await;
    let maps: Api<ConfigMap> = Api::namespaced(stage.world.client.clone(), &stage.world.namespace);
    let map = json!({ "metadata": { "name": "flexinfer-benchmark-results" }, "data": speeds() });
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let program = Extender::start(&stage, &[]).await;
    stage.schedule_by("ours", &extender(program.port, &json!({})));
    (stage, program)
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_land_where_the_formula_says() {
    let (stage, program) = stage().await;
    let situations = situations();
    for situation in &situations {
        for (name, change) in &situation.nodes {
            stage.node(situation.name, name, change).await;
        }
    }
    // What was created a moment ago may not be in the extender's view yet; then it says so, and is asked again.
    for situation in &situations {
        stage.pod("ours", situation.name, "pod", &situation.pod).await;
    }
    for situation in &situations {
        let landed = stage.landed(situation.name, "pod").await;
        let ranked = program.get("/debug/score").await;
        assert_eq!(landed, situation.belongs, "{}: {ranked}", situation.name);
    }
    let metrics = program.get("/metrics").await;
    for line in [
        "flexinfer_scheduler_requests_total{phase=\"filter\",result=\"ok\"}",
        "flexinfer_scheduler_requests_total{phase=\"score\",result=\"ok\"}",
        "flexinfer_scheduler_nodes_refused_total{reason=\"unreadable\"}",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gpu_15_whole_nodes_are_answered_too_and_pods_without_gpus_pass() {
    let (mut stage, program) = stage().await;
    stage.schedule_by("whole", &extender(program.port, &json!({ "nodeCacheCapable": false })));
    stage.node("whole", "busy", &annotated("gpu.util", "90")).await;
    stage.node("whole", "idle", &annotated("gpu.util", "1")).await;
    stage.node("blocked", "garbage", &annotated("gpu-free-memory", "?")).await;
    stage.pod("whole", "whole", "pod", &json!({})).await;
    let none = json!({ "spec": { "containers": [{ "name": "web", "image": "web" }] } });
    stage.pod("whole", "blocked", "web", &none).await;
    stage.pod("whole", "blocked", "engine", &json!({})).await;
    assert_eq!(stage.landed("whole", "pod").await, "idle");
    assert_eq!(stage.landed("blocked", "web").await, "garbage");
    let reason = "flexinfer.ai/gpu-free-memory of the node cannot be read";
    stage.waits_because("blocked", "engine", reason).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gpu_12_memory_that_was_promised_is_not_given_twice_and_comes_back() {
    let (stage, _program) = stage().await;
    stage.node("promise", "only", &annotated("gpu-free-memory", "24000")).await;
    stage.pod("ours", "promise", "first", &json!({})).await;
    assert_eq!(stage.landed("promise", "first").await, "only");
    // The node has a second GPU, and says that the memory of both is still free.
    stage.pod("ours", "promise", "second", &json!({})).await;
    stage.waits_because("promise", "second", "insufficient VRAM: have 4000 MB free").await;
    let pods = stage.pods();
    let now = kube::api::DeleteParams::default().grace_period(0);
    pods.delete("promise-first", &now).await.unwrap();
    // A pod that is refused is tried again when something of the cluster changes; a label is enough.
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(stage.world.client.clone());
    let name = stage.node_name("promise", "only");
    let mut turn = 0;
    eventually("the second pod has the node", async || {
        turn += 1;
        let touch = json!({ "metadata": { "labels": { "turn": turn.to_string() } } });
        let merge = kube::api::Patch::Merge(touch);
        nodes.patch(&name, &kube::api::PatchParams::default(), &merge).await.unwrap();
        pods.get("promise-second").await.unwrap().spec?.node_name
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_above_its_budget_is_moved_to_the_slower_node() {
    let mut stage = Stage::new().await;
    let environment = [
        ("SCHED_TENANT_FAIRSHARE_ENABLED", "true"),
        ("SCHED_TENANT_FAIRSHARE_BUDGET_GPUS", "1"),
        ("SCHED_TENANT_LABEL_KEY", "team"),
    ];
    let program = Extender::start(&stage, &environment).await;
    stage.schedule_by("fair", &extender(program.port, &json!({})));
    // Nobody has measured anything: the larger GPUs are sought after.
    stage.node("fair", "small", &json!({})).await;
    stage
        .node(
            "fair",
            "large",
            &json!({
                "labels": { "flexinfer.ai/gpu.vram": "25Gi" },
                "annotations": { "flexinfer.ai/gpu-free-memory": "51200" },
            }),
        )
        .await;
    let of = |team: &str| {
        json!({
            "metadata": { "labels": { "team": team }, "annotations": { "flexinfer.ai/gpu.vram-estimate-mb": "100" } },
        })
    };
    stage.pod("fair", "fair", "red-1", &of("red")).await;
    stage.landed("fair", "red-1").await;
    stage.pod("fair", "fair", "red-2", &of("red")).await;
    assert_eq!(stage.landed("fair", "red-2").await, "small", "twice its budget");
    let metrics = program.get("/metrics").await;
    let namespace = &stage.world.namespace;
    let line = format!(
        "flexinfer_scheduler_tenant_usage_ratio{{namespace=\"{namespace}\",tenant=\"red\"}} 2"
    );
    assert!(metrics.contains(&line), "{metrics}");
}
