//! vLLM: `vllm serve MODEL`, by its CLI reference and engine arguments.

use serde_json::{Value, json};

use flexinfer_crds::model::QuantizationFormat;

use super::engine::Engine;
use super::explain::{Clue, clue};
use super::keys::{Key, Takes, arguments};
use super::launch::file_of_model;
use super::subject::FILES;
use super::{
    Api, Call, Complaint, Config, Launch, LaunchError, MetricNames, ModelPlace, Placement, Probe,
    Subject, Support, Vendor, metrics,
};
use crate::activation::Reason;
use crate::sources::Scheme;

pub(super) struct Vllm;

pub(super) const KEYS: &[Key] = &[
    Key::option("dtype", Takes::Text, "--dtype"),
    Key::option("maxModelLen", Takes::Integer, "--max-model-len"),
    Key::option("gpuMemoryUtilization", Takes::NumberOrText, "--gpu-memory-utilization"),
    Key::read("tensorParallelSize", Takes::Integer),
    Key::option("pipelineParallelSize", Takes::Integer, "--pipeline-parallel-size"),
    Key::when_true("trustRemoteCode", "--trust-remote-code"),
    Key::option("maxNumSeqs", Takes::Integer, "--max-num-seqs"),
    Key::option("maxNumBatchedTokens", Takes::Integer, "--max-num-batched-tokens"),
    Key::when_true("enforceEager", "--enforce-eager"),
    Key::option("cpuOffloadGb", Takes::Number, "--cpu-offload-gb"),
    Key::option("offloadBackend", Takes::Text, "--offload-backend"),
    Key::option("numGpuBlocksOverride", Takes::Integer, "--num-gpu-blocks-override"),
    Key::option("quantization", Takes::Text, "--quantization"),
    Key::option("attentionBackend", Takes::Text, "--attention-backend"),
    Key::option("tokenizer", Takes::Text, "--tokenizer"),
    Key::option("kvCacheDtype", Takes::Text, "--kv-cache-dtype"),
    Key::when_false("enablePrefixCaching", "--no-enable-prefix-caching"),
    Key::either(
        "disableHybridKVCacheManager",
        "--disable-hybrid-kv-cache-manager",
        "--no-disable-hybrid-kv-cache-manager",
    ),
    Key::when_true("enableToolCalling", "--enable-auto-tool-choice"),
    Key::read("toolCallParser", Takes::Text),
    Key::option("reasoningParser", Takes::Text, "--reasoning-parser"),
    Key::when_true("disableLogStats", "--disable-log-stats"),
    Key::option("speculativeConfig", Takes::Json, "--speculative-config"),
    Key::option("limitMmPerPrompt", Takes::Json, "--limit-mm-per-prompt"),
    Key::option("mmProcessorKwargs", Takes::Json, "--mm-processor-kwargs"),
    Key::when_true("enablePromptTokensDetails", "--enable-prompt-tokens-details"),
    Key::variable("hipVisibleDevices", Takes::Text, "HIP_VISIBLE_DEVICES"),
    Key::variable("disabledKernels", Takes::Texts, "VLLM_DISABLED_KERNELS"),
    Key::variable("pytorchCudaAllocConf", Takes::Text, "PYTORCH_CUDA_ALLOC_CONF"),
    Key::read("rocmUseAiter", Takes::Flag),
];

/// What vLLM and vLLM-Omni say before they end.
pub(super) const CLUES: &[Clue] = &[
    clue(
        &["no available memory for the cache blocks"],
        Reason::OutOfMemory,
        "the weights leave no room for the KV cache; raise gpuMemoryUtilization, lower \
         maxModelLen, or use a quantized model",
    ),
    clue(
        &["kv cache is needed", "larger than the available kv cache memory"],
        Reason::OutOfMemory,
        "lower maxModelLen or raise gpuMemoryUtilization",
    ),
    clue(
        &["free memory on device", "less than desired gpu memory utilization"],
        Reason::OutOfMemory,
        "another program holds GPU memory; end it or lower gpuMemoryUtilization",
    ),
    clue(
        &["max_model_len", "is greater than the derived max_model_len"],
        Reason::InvalidConfig,
        "maxModelLen is longer than the model's own context; lower it",
    ),
    clue(
        &["model architectures", "are not supported"],
        Reason::InvalidConfig,
        "this vLLM does not know the model's architecture; update vLLM or use another model",
    ),
    clue(
        &["does not recognize this architecture"],
        Reason::InvalidConfig,
        "the transformers package is older than the model; update it",
    ),
    clue(
        &["trust_remote_code"],
        Reason::InvalidConfig,
        "the model brings code of its own; if you trust it, set trustRemoteCode: true",
    ),
    clue(
        &["failed to infer device type"],
        Reason::ProgramNotStarted,
        "vLLM sees no GPU; check the driver, and that vLLM is built for it",
    ),
    clue(
        &["no kernel image is available"],
        Reason::ProgramNotStarted,
        "vLLM is not built for this GPU's architecture",
    ),
    clue(
        &["can't load the configuration of"],
        Reason::BadSource,
        "the folder or repository holds no model that vLLM can read; check spec.source",
    ),
    clue(
        &["invalid repository id or local directory"],
        Reason::BadSource,
        "the folder or repository holds no model that vLLM can read; check spec.source",
    ),
];

impl Engine for Vllm {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        &[
            Api::Chat,
            Api::Completions,
            Api::Embeddings,
            Api::Responses,
            Api::StoredResponses,
            Api::Messages,
            Api::AudioTranscriptions,
            Api::AudioTranslations,
            Api::Rerank,
            Api::Score,
            Api::Realtime,
            Api::Tokenize,
        ]
    }

    fn port(&self) -> u16 {
        8000
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let config = subject.config;
        let mut launch = serve(subject, placement)?;
        launch.args.extend(arguments(config, KEYS)?);
        if config.flag("enableToolCalling")? == Some(true) {
            launch.arg("--tool-call-parser", config.text("toolCallParser")?.unwrap_or("hermes"));
        }
        if let Some(tokens) = subject.block_size {
            launch.arg("--block-size", tokens);
        }
        adapters(&mut launch, placement);
        variables(&mut launch, subject, placement)?;
        Ok(launch)
    }

    /// vLLM's own default is 256 sequences at once; more wait inside it.
    fn slots(&self, config: Config<'_>) -> Option<u32> {
        Some(config.count("maxNumSeqs").ok().flatten().filter(|slots| *slots > 0).unwrap_or(256))
    }

    fn served_name(&self, subject: &Subject<'_>) -> Option<String> {
        Some(subject.served_name())
    }

    fn metrics(&self) -> Option<&'static MetricNames> {
        Some(&metrics::VLLM)
    }

    fn sources(&self) -> &'static [Scheme] {
        FILES
    }

    fn quantizations(&self) -> &'static [QuantizationFormat] {
        use QuantizationFormat::{Awq, Fp8, Gguf, Gptq};
        &[Awq, Gptq, Fp8, Gguf]
    }

    fn architectures(&self) -> &'static [(&'static str, Support)] {
        &[("sm_5", Support::None)]
    }

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        let mut complaints = source_complaints(subject);
        if subject.swap_space {
            complaints.push(Complaint::warning(
                "spec.kvCache.swapSpace",
                "ignored: vLLM has had no swap space since 0.18; remove it, or use \
                 config.cpuOffloadGb to keep weights in main memory",
            ));
        }
        complaints
    }

    fn clues(&self) -> &'static [Clue] {
        CLUES
    }

    fn load_adapter(&self, name: &str, path: &str) -> Option<Call> {
        Some(Call::post("/v1/load_lora_adapter", json!({"lora_name": name, "lora_path": path})))
    }

    fn unload_adapter(&self, name: &str) -> Option<Call> {
        Some(Call::post("/v1/unload_lora_adapter", json!({"lora_name": name})))
    }

    fn adapter_is_loaded_already(&self, status: u16, answer: &Value) -> bool {
        status == 400 && answer.to_string().contains("has already been loaded")
    }
}

/// `vllm serve MODEL` with the address, the served name and one shard for each GPU: what vLLM and
/// vLLM-Omni have in common.
pub(super) fn serve(subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
    let config = subject.config;
    let model = match &placement.model {
        ModelPlace::Path(path) => file_of_model(path, subject.file().as_deref()),
        ModelPlace::Reference(_) => subject.bare_source().to_owned(),
        ModelPlace::Nothing => {
            return Err(LaunchError::Place("vLLM needs a model, and none was fetched".to_owned()));
        }
    };
    let mut launch = Launch::of("vllm", placement, Probe::success("/health"));
    launch.word("serve").word(model);
    launch.arg("--host", &placement.host).arg("--port", placement.port);
    launch.arg("--served-model-name", subject.served_name());
    let shards = config.integer("tensorParallelSize")?.unwrap_or(i64::from(placement.gpu.count));
    if shards > 1 {
        launch.arg("--tensor-parallel-size", shards);
    }
    Ok(launch)
}

pub(super) fn source_complaints(subject: &Subject<'_>) -> Vec<Complaint> {
    let hint = "name a model by HF://org/name or oci://host/name, or a folder by file:///path or \
                pvc://claim/path";
    subject.source_complaint(FILES, hint).into_iter().collect()
}

fn adapters(launch: &mut Launch, placement: &Placement) {
    if placement.adapters == 0 {
        return;
    }
    launch.word("--enable-lora").arg("--max-loras", placement.adapters.max(4));
    if let Some(rank) = placement.adapter_rank {
        launch.arg("--max-lora-rank", rank);
    }
    launch.set("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "True");
}

fn variables(
    launch: &mut Launch,
    subject: &Subject<'_>,
    placement: &Placement,
) -> Result<(), Complaint> {
    match placement.gpu.vendor {
        // Otherwise the fastest card is number 0, whatever nvidia-smi calls it.
        Vendor::Nvidia => {
            launch.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        }
        Vendor::Amd => {
            if let Some(aiter) = subject.config.flag("rocmUseAiter")? {
                launch.set("VLLM_ROCM_USE_AITER", u8::from(aiter));
            }
        }
        Vendor::Intel | Vendor::Cpu => {}
    }
    Ok(())
}
