//! Golden command lines, each named with the page of the engine's documentation it was read from.

use super::*;

fn line(sample: &Sample, placement: &Placement) -> String {
    rendered(&sample.launch(placement).expect("a launch"))
}

// llama.cpp, tools/server/README.md of commit 00dc805 (2026): the tables "Common params" and
// "Server-specific params".
#[test]
fn llamacpp_on_the_processor_offloads_no_layer_and_leaves_flash_attention_alone() {
    let options = json!({"flashAttention": true, "threads": 8});
    let sample = Sample::new("llamacpp", "file:///models/writer.gguf", options);
    let placement = Placement { gpu: Gpu::none(), ..machine("/models/writer.gguf") };
    insta::assert_snapshot!(line(&sample, &placement));
}

// The same page.
#[test]
fn llamacpp_with_every_option() {
    let options = json!({
        "contextSize": 8192, "nGPULayers": 20, "batchSize": 1024, "ubatchSize": 256, "threads": 8,
        "flashAttention": "auto", "mmproj": "/models/eyes.gguf", "chatTemplate": "chatml",
        "jinja": true, "gpuDeviceOrdinal": "CUDA1", "parallel": 2, "cacheTypeK": "q8_0",
        "cacheTypeV": "q8_0", "reasoningFormat": "deepseek", "reasoningBudget": 0,
        "metrics": true, "fitOff": true, "servedModelName": "the-writer",
    });
    let sample = Sample::new("llama.cpp", "file:///models/writer.gguf", options);
    insta::assert_snapshot!(line(&sample, &machine("/models/writer.gguf")));
}

#[test]
fn files_of_a_repository_are_found_below_its_top() {
    let paths = |source, file: Option<&str>, place| {
        let options = json!({"ggufFile": file, "mmproj": "eyes.gguf"});
        let launch = Sample::new("llamacpp", source, options).launch(&machine(place));
        let args = launch.expect("a launch").args;
        let after = |flag: &str| {
            let flag = args.iter().position(|argument| argument == flag).expect("the flag");
            args[flag + 1].clone()
        };
        (after("--model"), after("--mmproj"))
    };
    let wanted = ("/hub/q4/writer.gguf".to_owned(), "/hub/eyes.gguf".to_owned());
    let file = Some("q4/writer.gguf");
    assert_eq!(paths("HF://org/writer", file, "/hub"), wanted);
    assert_eq!(paths("HF://org/writer", file, "/hub/q4/writer.gguf"), wanted);
    assert_eq!(paths("HF://org/writer:q4/writer.gguf", None, "/hub"), wanted);
    let beside = ("/m/writer.gguf".to_owned(), "/m/eyes.gguf".to_owned());
    assert_eq!(paths("HF://org/writer:q4/writer.gguf", None, "/hub/q4/writer.gguf"), wanted);
    assert_eq!(paths("file:///m/writer.gguf", None, "/m/writer.gguf"), beside);
}

#[test]
fn a_folder_of_a_repository_is_not_gone_into_twice() {
    let sample = Sample::new("vllm", "HF://org/writer:fp8/small", json!({}));
    for place in ["/hub", "/hub/fp8/small"] {
        let launch = sample.launch(&machine(place)).expect("a launch");
        assert_eq!(launch.args[1], "/hub/fp8/small", "{place}");
    }
}

#[test]
fn a_program_of_the_users_own_comes_first_and_its_arguments_last() {
    let options = json!({
        "command": "'/opt/my builds/llama-server' --verbose",
        "args": ["--no-webui", "--slot-save-path", "/tmp/{port}"],
        "env": {"GGML_CUDA_FORCE_MMQ": 1, "WHERE": "{host}:{port} {model}"},
    });
    let sample = Sample::new("llamacpp", "file:///models/writer.gguf", options);
    insta::assert_snapshot!(line(&sample, &machine("/models/writer.gguf")));
}

// Ollama, docs/faq.mdx (variables, preloading), docs/api.md (pull, show, generate).
#[test]
fn ollama_pulls_what_it_lacks_and_keeps_the_model_loaded() {
    let options = json!({"parallel": 4, "contextSize": 8192, "kvCacheType": "q8_0"});
    let sample = Sample::new("ollama", "ollama://qwen3:0.6b", options);
    insta::assert_snapshot!(line(&sample, &machine("")));
}

// The same pages; GPUs are hidden as docs/gpu says.
#[test]
fn ollama_on_the_processor_sees_no_gpu() {
    let sample = Sample::new("ollama", "ollama://qwen3:0.6b", json!({}));
    insta::assert_snapshot!(line(&sample, &Placement { gpu: Gpu::none(), ..machine("") }));
}

// vLLM 0.32, "CLI Reference: vllm serve" and "Engine Arguments".
#[test]
fn vllm_is_told_the_name_the_gateway_will_ask_for() {
    let sample = Sample::new("vllm", "HF://org/writer", json!({}));
    insta::assert_snapshot!(line(&sample, &machine("/data/hub/org/writer")));
}

// The same pages.
#[test]
fn vllm_with_every_option() {
    let options = json!({
        "dtype": "bfloat16", "maxModelLen": 8192, "gpuMemoryUtilization": "0.90",
        "trustRemoteCode": true, "maxNumSeqs": 64, "maxNumBatchedTokens": 4096,
        "enforceEager": true, "cpuOffloadGb": 4, "offloadBackend": "uva",
        "numGpuBlocksOverride": 512, "quantization": "awq", "attentionBackend": "FLASH_ATTN",
        "tokenizer": "/models/tokenizer", "servedModelName": "the-writer",
        "kvCacheDtype": "fp8", "enablePrefixCaching": false,
        "disableHybridKVCacheManager": false, "enableToolCalling": true,
        "reasoningParser": "qwen3", "disableLogStats": true,
        "speculativeConfig": {"method": "ngram", "num_speculative_tokens": 4},
        "limitMmPerPrompt": "{\"image\": 2}", "mmProcessorKwargs": {"num_crops": 4},
        "enablePromptTokensDetails": true, "disabledKernels": ["A", "B"],
    });
    let mut sample = Sample::new("vllm", "pvc://weights/org/writer", options);
    sample.block_size = Some(32);
    insta::assert_snapshot!(line(&sample, &machine("/models/org/writer")));
}

// The same pages, and "LoRA Adapters: Dynamically serving LoRA Adapters".
#[test]
fn vllm_in_a_pod_with_two_amd_gpus_and_adapters() {
    let options = json!({"rocmUseAiter": true, "hipVisibleDevices": "0,1"});
    let sample = Sample::new("vllm", "HF://org/writer", options);
    let placement = Placement {
        gpu: gpu(Vendor::Amd, "gfx1100", 2),
        adapters: 2,
        adapter_rank: Some(32),
        ..pod("/models/writer")
    };
    insta::assert_snapshot!(line(&sample, &placement));
}

// MLC LLM, "REST API: Launch the Server" and python/mlc_llm/cli/serve.py of commit 01ced33.
#[test]
fn mlc_with_every_override() {
    let options = json!({
        "mode": "server", "maxNumSequence": 8, "maxTotalSeqLength": 16384,
        "prefillChunkSize": 512, "gpuMemoryUtilization": 0.85, "contextWindowSize": 8192,
        "slidingWindowSize": 4096, "attentionSinkSize": 4, "modelLibPath": "/models/lib.so",
    });
    let sample = Sample::new("mlc", "HF://mlc-ai/writer-MLC", options);
    let placement = Placement { gpu: gpu(Vendor::Nvidia, "sm_89", 2), ..machine("/models/w") };
    insta::assert_snapshot!(line(&sample, &placement));
}

#[test]
fn mlc_on_a_maxwell_gpu_does_not_compile() {
    let sample = Sample::new("mlc-llm", "file:///models/writer", json!({}));
    let placement = Placement { gpu: gpu(Vendor::Nvidia, "sm_52", 1), ..machine("/models/w") };
    insta::assert_snapshot!(line(&sample, &placement));
}

// The variables are the original project's own; there is no upstream page.
#[test]
fn diffusers_in_a_pod_leaves_the_program_to_its_image() {
    let options = json!({"numInferenceSteps": 30, "guidanceScale": 7.5, "useFp16": true,
        "skipWarmup": false, "negativePrompt": "blurry"});
    let sample = Sample::new("diffusers", "HF://org/painter", options);
    insta::assert_snapshot!(line(&sample, &pod("/models/painter")));
}

#[test]
fn diffusers_on_a_machine_needs_a_program() {
    let sample = Sample::new("diffusers", "HF://org/painter", json!({}));
    let error = sample.launch(&machine("/models/painter")).expect_err("no program");
    insta::assert_snapshot!(error.to_string());
}

// ComfyUI, comfy/cli_args.py of commit 005d79c, and "extra_model_paths.yaml" of its documentation.
#[test]
fn comfyui_with_models_and_custom_nodes_of_its_own() {
    let options = json!({"directory": "/opt/ComfyUI/", "modelsPath": "/models/comfy",
        "customNodesPath": "/opt/nodes", "outputDirectory": "/tmp/pictures"});
    let sample = Sample::new("comfyui", "", options);
    insta::assert_snapshot!(line(&sample, &machine("")));
}

#[test]
fn comfyui_takes_a_paths_file_as_it_is_and_leaves_cross_origin_requests_out() {
    let options = json!({"modelsPath": "/opt/paths.yaml", "enableCORS": false});
    let sample = Sample::new("comfy", "", options);
    let placement = Placement { gpu: Gpu::none(), ..pod("") };
    insta::assert_snapshot!(line(&sample, &placement));
}

// vLLM-Omni 0.26, "vLLM-Omni CLI Guide" and "Text-To-Image: Start with Parameters".
#[test]
fn vllm_omni_is_vllm_with_one_more_flag() {
    let options = json!({"vaeUseTiling": true});
    let sample = Sample::new("vllm-diffusion", "HF://org/painter", options);
    insta::assert_snapshot!(line(&sample, &machine("/data/hub/org/painter")));
}

// `flexinfer-gateway simulate --help`.
#[test]
fn the_simulator_is_our_own_program() {
    let options = json!({"loadTime": "2s", "slots": 8, "dieWhileLoading": "30%", "busy": 429,
        "neverAnswer": true, "oneByteWrites": false});
    let sample = Sample::new("simulator", "", options);
    insta::assert_snapshot!(line(&sample, &machine("")));
}

#[test]
fn an_external_engine_is_only_asked() {
    let options = json!({"url": "http://10.0.0.7:9000/v1/", "probe": "/health"});
    let sample = Sample::new("external", "", options);
    insta::assert_snapshot!(line(&sample, &machine("")));
}

#[test]
fn any_other_engine_by_its_command() {
    let options = json!({
        "command": ["python3", "-m", "sglang.launch_server", "--model-path", "{model}"],
        "args": ["--host", "{host}", "--port", "{port}", "--json", "{\"a\": {port}}"],
        "startupTimeout": "12m30s",
    });
    let sample = Sample::new("sglang", "HF://org/writer", options);
    assert_eq!(sample.backend(), Backend::Command);
    insta::assert_snapshot!(line(&sample, &machine("/data/hub/org/writer")));
}
