//! What is made of each backend on each maker's GPUs, whole.

use super::*;

macro_rules! drawn {
    ($sample:expr) => {
        let drawn = $sample.drawn();
        insta::assert_snapshot!(drawn);
    };
}

fn gpu() -> Value {
    json!({ "count": 1 })
}

#[test]
fn vllm_on_nvidia_from_the_hub() {
    drawn!(
        Sample::new(json!({
            "backend": "vllm",
            "source": "HF://Qwen/Qwen3-8B",
            "gpu": { "count": 2, "vramEstimateMB": 20_000 },
            "config": { "maxModelLen": 8192, "maxInputTokens": 16_384 },
            "serviceLabels": ["textgen"],
            "litellm": { "aliases": ["gpt-4o-mini"], "copilotAlias": "helper" },
            "resources": { "limits": { "memory": "64Gi" }, "requests": { "cpu": "1000m" } },
            "nodeSelector": { "disk": "fast" },
        }))
        .on(Vendor::Nvidia, "sm_89", 2)
    );
}

#[test]
fn vllm_on_amd_in_a_group() {
    drawn!(
        Sample::new(json!({
            "backend": "vllm",
            "source": "HF://Qwen/Qwen3-8B@main",
            "gpu": { "count": 1, "shared": "desk" },
            "cache": { "strategy": "Local" },
            "serviceLabels": ["textgen"],
        }))
        .on(Vendor::Amd, "gfx1100", 1)
    );
}

#[test]
fn llamacpp_on_the_processor_from_a_claim() {
    drawn!(Sample::new(json!({
        "backend": "llamacpp",
        "source": "pvc://weights/gguf/writer.gguf",
        "config": { "contextSize": 4096 },
    })));
}

#[test]
fn llamacpp_on_nvidia_with_a_projector() {
    drawn!(
        Sample::new(json!({
            "backend": "llamacpp",
            "source": "HF://org/Writer-GGUF",
            "gpu": gpu(),
            "cache": { "strategy": "Memory", "size": "20Gi" },
            "config": { "ggufFile": "writer-q4.gguf", "mmproj": "eyes.gguf" },
        }))
        .on_nvidia()
    );
}

#[test]
fn llamacpp_on_intel() {
    drawn!(
        Sample::new(json!({
            "backend": "llamacpp",
            "source": "file:///var/lib/flexinfer/models/writer.gguf",
            "gpu": gpu(),
        }))
        .on(Vendor::Intel, "xe", 1)
    );
}

#[test]
fn ollama_on_amd() {
    drawn!(
        Sample::new(json!({
            "backend": "ollama",
            "source": "ollama://llama3.2:1b",
            "gpu": gpu(),
        }))
        .on(Vendor::Amd, "gfx1100", 1)
    );
}

#[test]
fn mlc_on_nvidia() {
    drawn!(
        Sample::new(json!({
            "backend": "mlc-llm",
            "source": "HF://mlc-ai/Qwen3-8B-q4f16_1-MLC",
            "gpu": gpu(),
            "serverless": { "maxReplicas": 3 },
        }))
        .on_nvidia()
    );
}

#[test]
fn diffusers_with_an_autoencoder_of_its_own() {
    drawn!(
        Sample::new(json!({
            "backend": "diffusers",
            "source": "HF://stabilityai/sdxl",
            "image": "registry.example/diffusers:1",
            "gpu": gpu(),
            "config": { "vaeRepo": "madebyollin/sdxl-vae-fp16-fix" },
            "cache": { "strategy": "Memory" },
        }))
        .on_nvidia()
    );
}

#[test]
fn comfyui_with_folders_of_models() {
    drawn!(
        Sample::new(json!({
            "backend": "comfyui",
            "gpu": gpu(),
            "cache": { "strategy": "SharedPVC", "pvcName": "pictures" },
            "config": { "modelsPath": "/models/comfy" },
        }))
        .on_nvidia()
    );
}

#[test]
fn vllm_omni_with_an_image_by_digest() {
    drawn!(Sample::new(json!({
        "backend": "vllm-omni",
        "source": "HF://Qwen/Qwen2.5-Omni-7B",
        "image": "registry.example:5000/omni:1",
        "imageDigest": "a".repeat(64),
        "gpu": gpu(),
        "cache": { "flashLoader": { "enabled": true, "concurrency": 8, "tmpfsSizeLimit": "30Gi" } },
    }))
    .on_nvidia());
}

#[test]
fn the_simulator() {
    drawn!(Sample::new(json!({ "backend": "simulator", "config": { "loadTime": "1s" } })));
}

#[test]
fn any_other_engine() {
    drawn!(Sample::new(json!({
        "backend": "My Engine",
        "image": "registry.example/engine:2",
        "config": {
            "command": ["serve", "--port", "{port}"],
            "args": ["--price", "$(POD_IP)$5"],
            "env": { "MODE": "fast" },
            "probe": "tcp",
        },
    })));
}

#[test]
fn an_engine_that_somebody_else_runs_is_not_deployed() {
    let spec = json!({ "backend": "external", "config": { "url": "http://10.0.0.1:8000" } });
    assert_eq!(Sample::new(spec).blueprint().unwrap().deployment(), Ok(None));
}

#[test]
fn a_model_that_asks_to_be_measured() {
    let mut sample = Sample::new(json!({
        "backend": "vllm",
        "source": "HF://Qwen/Qwen3-8B-AWQ",
        "gpu": { "count": 1, "shared": "desk" },
        "cache": { "strategy": "SharedPVC", "flashLoader": { "enabled": true } },
        "config": { "quantization": "awq_marlin" },
    }))
    .on_nvidia()
    .annotated(keys::BENCHMARK, "auto");
    sample.settings.flash.peers = vec!["flexinfer-weights.flexinfer.svc:9876".to_owned()];
    sample.settings.benchmarks = Benchmarks {
        service_account: Some("flexinfer-benchmarker".to_owned()),
        gateway: Some("http://flexinfer-proxy.flexinfer.svc:8080".to_owned()),
        key: Some(SecretKey { name: "callers".to_owned(), key: "token".to_owned() }),
        results_namespace: "flexinfer".to_owned(),
        ..Benchmarks::default()
    };
    drawn!(sample);
}

#[test]
fn vllm_on_amd_with_weights_that_are_quantized_first() {
    drawn!(
        Sample::new(json!({
            "backend": "vllm",
            "source": "HF://Qwen/Qwen3-8B",
            "gpu": gpu(),
            "nodeSelector": { "disk": "fast" },
            "quantize": {
                "format": "GPTQ", "bits": 8, "groupSize": 64, "descAct": true, "timeoutSeconds": 600,
                "calibration": { "maxSamples": 64, "nParallelCalibSamples": 4, "dataset": "org/texts" },
                "nodeSelector": { "gpu": "large" },
            },
        }))
        .with_image("FLEXINFER_QUANTIZER_GPTQ_ROCM_GFX1100_IMAGE", "registry.example/gptq:rocm")
        .on(Vendor::Amd, "gfx1100", 2)
    );
}

#[test]
fn llamacpp_on_the_processor_with_a_gguf_made_of_a_repository() {
    drawn!(
        Sample::new(json!({
            "backend": "llamacpp",
            "source": "HF://Qwen/Qwen3-8B",
            "quantize": { "format": "GGUF", "ggufType": "Q5_K_M", "maxMemoryGB": 16 },
        }))
        .with_image("FLEXINFER_QUANTIZER_GGUF_IMAGE", "registry.example/gguf:1")
    );
}
