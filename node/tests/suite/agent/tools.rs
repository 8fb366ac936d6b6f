//! GPUs by the vendors' tools, in the container and on the host, and by `/sys`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::world::{Node, printing};

const CSV: &str = "GPU-a, 24564, 564, 50, 33, [N/A], [N/A], 8.9, NVIDIA GeForce RTX 4090";

/// Composed after the documentation of `rocm-smi` in ROCm 6.4.
const ROCM: &str = r#"{"card0": {"Unique ID": "0xaa", "GPU use (%)": "12", "GFX Version": "gfx1100",
    "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "0"}}"#;

#[test]
fn nvidia_smi_is_asked_here_and_then_on_the_host() {
    for node in [
        Node::new().tool("nvidia-smi", &printing(CSV)),
        Node::new().host_tool("nvidia-smi", &printing(CSV)),
        // As an image with another C library has it.
        Node::new().tool("nvidia-smi", "exit 127").host_tool("nvidia-smi", &printing(CSV)),
    ] {
        let looked = node.look();
        assert_eq!(looked.label("gpu.arch"), "sm_89", "{}", looked.log);
        assert_eq!(looked.annotation("gpu-free-memory"), "24000");
    }
}

#[test]
fn the_hosts_tool_is_that_of_the_drivers_container_where_there_is_one() {
    let node = Node::new().host_tool("nvidia-smi", "echo 'no driver'; exit 9");
    for folder in ["usr/bin", "bin", "lib", "lib64"] {
        let (host, driver) =
            (node.path("host").join(folder), node.path("host/run/nvidia/driver").join(folder));
        if host.is_dir() {
            copied(&host, &driver);
        }
    }
    let driver = node.path("host/run/nvidia/driver/bin/nvidia-smi");
    fs::write(&driver, format!("#!/bin/sh\n{}", printing(CSV))).unwrap();
    assert_eq!(node.look().label("gpu.arch"), "sm_89");
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_gpu_that_nothing_in_reach_knows_is_told_with_what_to_do() {
    for (vendor, maker) in [("0x10de", "an NVIDIA GPU"), ("0x1002", "an AMD GPU")] {
        let looked = Node::new().on_the_bus(vendor).look();
        let health = looked.annotation("gpu-health").as_str().unwrap();
        assert!(health.starts_with(&format!("attention: {maker} is on the bus")), "{health}");
        assert!(health.contains("docs/agent.md"), "{health}");
        assert!(looked.log.contains("the GPUs are not as they should be"), "{}", looked.log);
        assert_eq!(looked.label("gpu.count"), &Value::Null);
    }
}

#[test]
fn an_older_driver_is_asked_for_what_it_knows() {
    let script = format!(
        "case $1 in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;; esac\n{}",
        printing("GPU-a, 8192, 0, 0, 33, [N/A], [N/A], Tesla M60")
    );
    let looked = Node::new().tool("nvidia-smi", &script).look();
    assert_eq!(looked.label("gpu.vram"), "8Gi");
    assert_eq!(looked.label("gpu.arch"), &Value::Null);
}

#[test]
fn gpu_06_warnings_before_the_json_do_no_harm() {
    let noisy = format!("WARNING: AMD GPU device(s) is/are in a low-power state.\n\n{ROCM}");
    let looked = Node::new().tool("rocm-smi", &printing(&noisy)).look();
    assert_eq!(looked.label("gpu.vendor"), "AMD");
    assert_eq!(looked.label("gpu.arch"), "gfx1100");
}

#[test]
fn gpu_06_sysfs_answers_where_the_tools_say_nothing() {
    for silent in ["exit 0", "echo 'WARNING: No JSON data to report'"] {
        let node =
            Node::new().on_the_bus("0x1002").tool("amd-smi", silent).tool("rocm-smi", silent);
        let looked = card(node).look();
        assert_eq!(looked.label("gpu.vram"), "24Gi", "{}", looked.log);
        assert_eq!(looked.label("gpu.arch"), "gfx1100");
        assert_eq!(looked.annotation("gpu.util"), "9.00");
    }
}

#[test]
fn gpu_06_nothing_from_anywhere_is_unknown_while_the_bus_has_a_gpu() {
    let looked = Node::new().on_the_bus("0x1002").tool("rocm-smi", "exit 0").look();
    let health = looked.annotation("gpu-health").as_str().unwrap();
    assert!(
        health.starts_with("unknown: the answer of rocm-smi cannot be read: it is empty"),
        "{health}"
    );
}

fn card(node: Node) -> Node {
    let device = "class/drm/card0/device";
    node.sysfs(&format!("{device}/vendor"), "0x1002\n")
        .sysfs(&format!("{device}/uevent"), "PCI_SLOT_NAME=0000:03:00.0\n")
        .sysfs(&format!("{device}/mem_info_vram_total"), "25753026560\n")
        .sysfs(&format!("{device}/mem_info_vram_used"), "0\n")
        .sysfs(&format!("{device}/mem_info_gtt_total"), "68719476736\n")
        .sysfs(&format!("{device}/gpu_busy_percent"), "9\n")
        .sysfs(
            "class/kfd/kfd/topology/nodes/1/properties",
            "cpu_cores_count 0\nsimd_count 192\ngfx_target_version 110000\nlocation_id 768\ndomain 0\n",
        )
}

#[test]
fn gpu_09_a_tool_that_hangs_is_killed_with_all_that_it_started() {
    let node = Node::new().on_the_bus("0x10de").variable("FLEXINFER_PROBE_TIMEOUT", "1s");
    let mark = node.path("started");
    let script =
        format!("trap '' TERM INT\nsleep 1000 &\necho $! > {}\nwait\nsleep 1000", mark.display());
    let node = node.tool("nvidia-smi", &script);
    let begun = Instant::now();
    let looked = node.look();
    assert!(begun.elapsed() < Duration::from_secs(20));
    let health = looked.annotation("gpu-health").as_str().unwrap();
    assert!(health.starts_with("unknown: nvidia-smi did not answer within 1s"), "{health}");
    let child = fs::read_to_string(mark).unwrap();
    assert!(ends(child.trim()), "the tool's child {child} outlived it");
}

/// The process ends, or has ended and only waits to be noticed.
fn ends(process: &str) -> bool {
    let running = || {
        let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        Some(!status.rsplit_once(") ")?.1.starts_with('Z'))
    };
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if running() != Some(true) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_tool_without_its_hardware_does_not_make_a_node_unknown() {
    let said = "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9";
    let looked = card(Node::new().on_the_bus("0x1002").tool("nvidia-smi", said)).look();
    assert_eq!(looked.label("gpu.vendor"), "AMD");
    assert_eq!(looked.annotation("gpu-health"), "good");
}

#[test]
fn a_jetson_is_known_by_its_device_tree() {
    let compatible = "nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0";
    let looked = Node::new().sysfs("firmware/devicetree/base/compatible", compatible).look();
    assert_eq!(looked.label("gpu.arch"), "sm_87");
    assert_eq!(looked.label("gpu.count"), "1");
}

#[test]
fn a_node_without_gpus_is_labelled_with_its_processor() {
    let looked = Node::new().look();
    assert!(looked.label("cpu.avx512").is_string());
    assert_eq!(looked.label("gpu.count"), &Value::Null);
    assert_eq!(looked.patch["metadata"]["annotations"], Value::Null);
}

#[test]
fn another_prefix_has_copies_of_the_labels() {
    let node = Node::new().variable("FLEXINFER_AGENT_LABEL_PREFIX", "gpu.example.com/");
    let labels = node.look().patch["metadata"]["labels"].clone();
    assert!(labels["gpu.example.com/cpu.avx512"].is_string(), "{labels}");
    assert_eq!(labels["flexinfer.ai/cpu.avx512"], labels["gpu.example.com/cpu.avx512"]);
}

#[test]
fn an_interval_of_nothing_is_refused() {
    for flag in ["--interval", "--spot-interval"] {
        let output =
            Node::new().agent().args(["--dry-run", "--once", flag, "0s"]).output().unwrap();
        let said = super::world::text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("longer than nothing"), "{said}");
    }
}
