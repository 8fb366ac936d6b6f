//! Every variable that the original's controller manager reads: read here too, shown, and explained.

use std::process::Command;

use serde_json::{Value, json};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/kubernetes-objects.md");

fn controller() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flexinfer-controller"));
    command.env_clear();
    command
}

fn printed(variables: &[(&str, &str)]) -> Value {
    let mut command = controller();
    let command = command.args(["run", "--print-settings"]).envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A variable, what it is set to, under which name it is shown, as what, and as what where it is not set.
fn table() -> Vec<(&'static str, &'static str, &'static str, Value, Value)> {
    vec![
        ("POD_NAMESPACE", "ml", "namespace", json!("ml"), json!("default")),
        (
            "METRICS_BIND_ADDRESS",
            ":9999",
            "metrics-bind-address",
            json!("0.0.0.0:9999"),
            json!("0.0.0.0:8080"),
        ),
        (
            "HEALTH_PROBE_BIND_ADDRESS",
            "0",
            "health-probe-bind-address",
            json!("0"),
            json!("0.0.0.0:8081"),
        ),
        ("LEADER_ELECT", "true", "leader-elect", json!(true), json!(false)),
        ("DEFAULT_SHM_SIZE_LIMIT", "16Gi", "shm-size", json!("16Gi"), json!("8Gi")),
        ("DEFAULT_FLASH_LOADER_ENABLED", "true", "flash-loader", json!(true), json!(false)),
        ("DEFAULT_FLASH_LOADER_CONCURRENCY", "8", "flash-loader-concurrency", json!(8), json!(4)),
        (
            "DEFAULT_FLASH_LOADER_TMPFS_SIZE_LIMIT",
            "40Gi",
            "flash-loader-tmpfs-size-limit",
            json!("40Gi"),
            json!(null),
        ),
        (
            "DEFAULT_FLASH_LOADER_BUFFER_KB",
            "1024",
            "flash-loader-buffer-kb",
            json!(1024),
            json!(4096),
        ),
        ("DEFAULT_FLASH_LOADER_VERIFY", "true", "flash-loader-verify", json!(true), json!(false)),
        (
            "DEFAULT_FLASH_LOADER_EXCLUDE",
            "*.md, *.txt",
            "flash-loader-exclude",
            json!(["*.md", "*.txt"]),
            json!([]),
        ),
    ]
}

/// Every variable by which the original names an image of a kind that is made here.
const IMAGES: [&str; 25] = [
    "DEFAULT_BACKEND_IMAGE",
    "DEFAULT_BACKEND_IMAGE_NVIDIA",
    "DEFAULT_BACKEND_IMAGE_AMD",
    "DEFAULT_BACKEND_IMAGE_INTEL",
    "DEFAULT_MLC_LLM_IMAGE",
    "DEFAULT_MLC_LLM_IMAGE_AMD",
    "DEFAULT_MLC_LLM_IMAGE_MAXWELL",
    "DEFAULT_LLAMA_CPP_IMAGE",
    "DEFAULT_LLAMA_CPP_IMAGE_AMD",
    "DEFAULT_LLAMA_CPP_IMAGE_CPU",
    "DEFAULT_LLAMA_CPP_IMAGE_MAXWELL",
    "DEFAULT_COMFYUI_IMAGE",
    "DEFAULT_COMFYUI_IMAGE_AMD",
    "DEFAULT_DIFFUSERS_IMAGE",
    "DEFAULT_DIFFUSERS_IMAGE_AMD",
    "DEFAULT_VLLM_IMAGE",
    "DEFAULT_VLLM_IMAGE_AMD",
    "DEFAULT_VLLM_IMAGE_GFX1100",
    "DEFAULT_FLASH_LOADER_IMAGE",
    "FLEXINFER_QUANTIZER_GGUF_IMAGE",
    "FLEXINFER_QUANTIZER_AWQ_IMAGE",
    "FLEXINFER_QUANTIZER_GPTQ_IMAGE",
    "FLEXINFER_QUANTIZER_EXL2_IMAGE",
    "FLEXINFER_QUANTIZER_FP8_IMAGE",
    "FLEXINFER_RUNTIME_IMAGE",
];

#[test]
fn every_variable_of_the_originals_is_read_shown_and_explained() {
    let help = controller().args(["run", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let unset = printed(&[]);
    for (variable, set, name, shown, default) in table() {
        assert_eq!(printed(&[(variable, set)])[name], shown, "{variable}");
        assert_eq!(unset[name], default, "{variable}, not set");
        assert!(help.contains(&format!("[env: {variable}=")), "{variable} is not in --help");
    }
}

#[test]
fn every_image_of_the_originals_is_shown_and_explained() {
    let set = IMAGES.map(|variable| (variable, "registry.example/image:1"));
    let images = printed(&set)["images"].clone();
    let page = std::fs::read_to_string(PAGE).unwrap();
    for variable in IMAGES {
        assert_eq!(images[variable], json!("registry.example/image:1"), "{variable}");
        let stem = variable.split("_IMAGE").next().unwrap();
        assert!(page.contains(&format!("{stem}_IMAGE")), "{variable} is not in the documentation");
    }
    assert_eq!(printed(&[("DEFAULT_VLLM_IMAGE", "  ")])["images"], json!({}), "empty is not set");
}
