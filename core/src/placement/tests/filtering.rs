//! Refusals.

use super::*;

fn said(pod: &Pod, node: &Node) -> Option<String> {
    refusal(pod, node, &[]).map(|refusal| refusal.to_string())
}

#[test]
fn the_originals_three_checks() {
    let pod = pod(1, "20000");
    let table = [
        (node(&[]), None),
        (node(&[(keys::GPU_VENDOR, "-")]), Some("no label flexinfer.ai/gpu.vendor")),
        (
            node(&[(keys::GPU_FREE_MEMORY, "15000")]),
            Some("insufficient VRAM: have 15000 MB free, need 20000 MB"),
        ),
        (node(&[(keys::GPU_ARCHITECTURE, "sm_52")]), Some("vllm does not run on sm_52")),
    ];
    for (node, expected) in table {
        let said = said(&pod, &node);
        assert_eq!(said.is_some(), expected.is_some(), "{said:?}");
        assert!(said.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{expected:?}");
    }
}

#[test]
fn a_check_is_left_out_where_nothing_is_known() {
    let bare = node(&[
        (keys::GPU_ARCHITECTURE, "-"),
        (keys::GPU_COUNT, "-"),
        (keys::GPU_VRAM, "-"),
        (keys::GPU_INT4, "-"),
        (keys::GPU_FREE_MEMORY, "-"),
    ]);
    assert_eq!(said(&pod(4, "90000"), &bare), None);
    assert_eq!(said(&pod(1, "0"), &node(&[(keys::GPU_FREE_MEMORY, "0")])), None);
}

#[test]
fn gpu_15_a_pod_without_gpus_passes_everywhere() {
    let nodes = [
        node(&[(keys::GPU_VENDOR, "-")]),
        node(&[(keys::GPU_FREE_MEMORY, "?")]),
        node(&[(keys::SPOT_TERMINATING, "true")]),
        Node::default(),
    ];
    let init = json!({ "spec": { "initContainers": [
        { "name": "i", "resources": { "limits": { "nvidia.com/gpu": "8" } } } ] } });
    for node in nodes {
        assert_eq!(said(&changed(0, "9999999", &init), &node), None);
    }
}

#[test]
fn gpu_14_what_cannot_be_read_blocks_its_node_and_is_named() {
    let huge = "1".repeat(300_000);
    let table = [
        (keys::GPU_FREE_MEMORY, "{\"v\":2,\"free\":["),
        (keys::GPU_FREE_MEMORY, "-5"),
        (keys::GPU_FREE_MEMORY, "NaN"),
        (keys::GPU_FREE_MEMORY_EACH, "24000;24000"),
        (keys::GPU_FREE_MEMORY_EACH, "W3siaWQiOiI="),
        (keys::GPU_FREE_MEMORY_EACH, &huge),
        (keys::GPU_MEASURED_AT, "yesterday"),
        (keys::GPU_COUNT, "two"),
        (keys::GPU_VRAM, "24 gigabytes"),
        (keys::GPU_INT4, "maybe"),
        (keys::GPU_VENDOR, "Acme"),
    ];
    for (key, text) in table {
        let refusal = refusal(&pod(1, "0"), &node(&[(key, text)]), &[]).unwrap();
        assert_eq!(refusal, Refusal::Unreadable { key }, "{text:.40}");
        assert!(!refusal.may_pass(), "no pod's leaving makes a text readable");
    }
    assert_eq!(
        refusal(&pod(1, "lots"), &node(&[]), &[]),
        Some(Refusal::UnreadablePod),
        "a need that cannot be read is not none"
    );
}

#[test]
fn free_memory_counts_on_each_gpu_where_it_is_known() {
    // 24000 MiB in all, and on neither GPU enough for a model of 20000.
    let halves =
        node(&[(keys::GPU_FREE_MEMORY, "24000"), (keys::GPU_FREE_MEMORY_EACH, "12000,12000")]);
    let one = node(&[(keys::GPU_FREE_MEMORY, "24000"), (keys::GPU_FREE_MEMORY_EACH, "1000,23000")]);
    let need = "have 12000 MB free, need 20000 MB";
    assert!(said(&pod(1, "20000"), &halves).unwrap().contains(need));
    assert_eq!(said(&pod(1, "20000"), &one), None);
    assert!(said(&pod(2, "12000"), &one).is_some(), "the other GPU is full");
    assert_eq!(said(&pod(2, "12000"), &halves), None);
}

#[test]
fn what_a_pod_asks_for_must_be_what_the_node_has() {
    let amd = node(&[(keys::GPU_VENDOR, "AMD"), (keys::GPU_ARCHITECTURE, "gfx1100")]);
    assert_eq!(said(&pod(1, "0"), &amd).unwrap(), "its GPUs are amd, not nvidia");
    assert_eq!(said(&pod(3, "0"), &node(&[])).unwrap(), "too few GPUs: have 2, need 3");
    assert_eq!(
        said(&pod(1, "30000"), &node(&[])).unwrap(),
        "GPUs too small: have 24576 MB, need 30000 MB on each"
    );
    let awq = json!({ "metadata": { "labels": { keys::FORMAT: "AWQ" } } });
    let older = node(&[(keys::GPU_INT4, "false")]);
    assert_eq!(
        said(&changed(1, "0", &awq), &older).unwrap(),
        "AWQ weights need GPUs that compute in four-bit integers"
    );
    assert_eq!(said(&changed(1, "0", &awq), &node(&[])), None);
    let gguf = json!({ "metadata": { "labels": { keys::FORMAT: "GGUF" } } });
    assert_eq!(said(&changed(1, "0", &gguf), &older), None);
}

#[test]
fn a_node_that_goes_away_or_is_out_of_order_takes_nothing_new() {
    let pod = pod(1, "0");
    assert_eq!(
        refusal(&pod, &node(&[(keys::SPOT_TERMINATING, "true")]), &[]),
        Some(Refusal::Leaving)
    );
    let tainted = Node::read(
        &owned(&[(keys::GPU_VENDOR, "NVIDIA")]),
        &BTreeMap::new(),
        ["other", keys::SPOT_TERMINATING],
    );
    assert_eq!(refusal(&pod, &tainted, &[]), Some(Refusal::Leaving));
    let silent = node(&[(keys::GPU_HEALTH, "unknown: nvidia-smi failed")]);
    assert_eq!(said(&pod, &silent).unwrap(), "its GPUs are unknown: nvidia-smi failed");
    assert_eq!(said(&pod, &node(&[(keys::GPU_HEALTH, "degraded: 7 of 8 GPUs answer")])), None);
}

#[test]
fn only_what_other_pods_hold_could_change_by_evicting_them() {
    let may_pass = |memory, texts: &[(&str, &str)]| {
        refusal(&pod(1, memory), &node(texts), &[]).unwrap().may_pass()
    };
    assert!(may_pass("20000", &[(keys::GPU_FREE_MEMORY, "1")]));
    assert!(!may_pass("30000", &[]));
    assert!(!may_pass("1", &[(keys::GPU_VENDOR, "-")]));
    assert!(!may_pass("1", &[(keys::GPU_ARCHITECTURE, "sm_52")]));
}

#[test]
fn gpus_are_limits_else_requests_of_all_containers() {
    let two = json!({ "spec": { "containers": [
        { "name": "a", "resources": { "limits": { "nvidia.com/gpu": "2" }, "requests": { "nvidia.com/gpu": "2" } } },
        { "name": "b", "resources": { "requests": { "nvidia.com/gpu": "1" } } },
        { "name": "c", "resources": { "limits": { "cpu": "4" } } },
    ] } });
    assert_eq!(changed(0, "0", &two).gpus, 3);
    let slices = json!({ "spec": { "containers": [
        { "name": "a", "resources": { "limits": { "nvidia.com/mig-1g.10gb": "1" } } } ] } });
    let slices = changed(0, "0", &slices);
    assert_eq!((slices.gpus, slices.vendor), (1, Some(crate::backends::Vendor::Nvidia)));
}
