//! NVIDIA's GPUs by NVML: the real binding over a fake library.

use std::time::{Duration, Instant};

use super::world::{Node, printing};

const CSV: &str = "GPU-smi, 40960, 0, 7, 33, [N/A], [N/A], 8.0, NVIDIA A100-SXM4-40GB";

#[test]
fn gpus_are_labelled_by_what_the_library_says() {
    let Some(node) = Node::new().nvml("good") else { return };
    let looked = node.look();
    assert_eq!(looked.label("gpu.vendor"), "NVIDIA");
    assert_eq!(looked.label("gpu.arch"), "sm_80");
    assert_eq!(looked.label("gpu.vram"), "40Gi");
    assert_eq!(looked.label("gpu.count"), "2");
    assert_eq!(looked.label("gpu.int4"), "true");
    assert_eq!(looked.label("enabled"), "true");
    assert_eq!(looked.annotation("gpu.util"), "15.00");
    assert_eq!(looked.annotation("gpu-free-memory"), "79872");
    assert_eq!(looked.annotation("gpu-free-memory.each"), "39936,39936");
    assert_eq!(looked.annotation("gpu-health"), "good");
}

#[test]
fn the_hosts_library_is_asked_where_the_container_has_none() {
    let debian = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    for folder in [debian.as_str(), "usr/lib64", "run/nvidia/driver/usr/lib64"] {
        let Some(node) = Node::new().host_nvml(folder, "good") else { return };
        let looked = node.look();
        assert_eq!(looked.label("gpu.arch"), "sm_80", "{folder}: {}", looked.log);
        assert_eq!(looked.label("gpu.count"), "2");
    }
}

#[test]
fn gpu_02_instances_are_devices_and_their_parent_is_not() {
    let Some(node) = Node::new().nvml("mig") else { return };
    let looked = node.look();
    // Three instances of the first GPU, and the second GPU whole.
    assert_eq!(looked.label("gpu.count"), "4");
    assert_eq!(looked.annotation("gpu-free-memory.each"), "18944,3840,18944,39936");
    assert_eq!(looked.annotation("gpu.util"), &serde_json::Value::Null);
}

#[test]
fn gpu_02_mig_without_instances_offers_nothing_and_says_so() {
    let Some(node) = Node::new().nvml("mig without instances") else { return };
    let looked = node.look();
    assert_eq!(looked.label("gpu.count"), "0");
    let health = looked.annotation("gpu-health").as_str().unwrap();
    assert!(health.starts_with("attention: GPU GPU-1 has MIG on and no instances"), "{health}");
}

#[test]
fn unified_memory_is_the_machines() {
    let Some(node) = Node::new().nvml("gb10") else { return };
    let looked = node.look();
    let vram = looked.label("gpu.vram").as_str().unwrap();
    assert!(vram.ends_with("Gi") && vram != "0Gi", "{vram}");
}

#[test]
fn gpu_08_unknown_error_is_an_unknown_node_and_not_zero_gpus() {
    let Some(node) = Node::new().on_the_bus("0x10de").nvml("unknown") else { return };
    let looked = node.look();
    assert_eq!(looked.label("gpu.count"), &serde_json::Value::Null);
    let health = looked.annotation("gpu-health").as_str().unwrap();
    assert!(health.starts_with("unknown: NVML failed: "), "{health}");
    assert!(looked.log.contains("the GPUs are not as they should be"), "{}", looked.log);
}

#[test]
fn gpu_09_a_lost_gpu_is_said() {
    let Some(node) = Node::new().nvml("lost") else { return };
    let health = node.look().annotation("gpu-health").clone();
    let health = health.as_str().unwrap();
    assert!(health.starts_with("degraded: 1 of 2 GPUs answer: GPU number 1"), "{health}");
}

#[test]
fn gpu_09_a_library_that_hangs_is_left_and_no_tool_is_asked_after_it() {
    let node = Node::new().on_the_bus("0x10de").tool("nvidia-smi", &printing(CSV));
    let Some(node) = node.variable("FLEXINFER_PROBE_TIMEOUT", "1s").nvml("hang") else { return };
    let begun = Instant::now();
    let looked = node.look();
    assert!(begun.elapsed() < Duration::from_secs(20));
    let health = looked.annotation("gpu-health").as_str().unwrap();
    assert!(health.starts_with("unknown: NVML did not answer within 1s"), "{health}");
}

#[test]
fn a_failing_library_gives_way_to_the_tool() {
    let Some(node) = Node::new().tool("nvidia-smi", &printing(CSV)).nvml("unknown") else { return };
    assert_eq!(node.look().label("gpu.count"), "1");
}
