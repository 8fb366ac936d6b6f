//! MLC LLM: `python -m mlc_llm serve MODEL`, by its REST documentation and `cli/serve.py`.

use super::engine::Engine;
use super::explain::{Clue, clue};
use super::keys::{Key, Takes, pairs};
use super::subject::FILES;
use super::{
    Api, Complaint, Config, Expected, Launch, LaunchError, ModelPlace, Placement, Probe, Subject,
    Support, Vendor,
};
use crate::activation::Reason;
use crate::sources::Scheme;

pub(super) struct MlcLlm;

const KEYS: &[Key] = &[
    Key::read("mode", Takes::Text),
    Key::read("modelLibPath", Takes::Text),
    Key::read("device", Takes::Text),
    Key::read("jitPolicy", Takes::Text),
    Key::read("gpuMemoryBytes", Takes::Integer),
    Key::pair("maxNumSequence", Takes::Integer, "max_num_sequence"),
    Key::pair("maxTotalSeqLength", Takes::Integer, "max_total_seq_length"),
    Key::pair("prefillChunkSize", Takes::Integer, "prefill_chunk_size"),
    Key::pair("gpuMemoryUtilization", Takes::NumberOrText, "gpu_memory_utilization"),
    Key::pair("contextWindowSize", Takes::Integer, "context_window_size"),
    Key::pair("slidingWindowSize", Takes::Integer, "sliding_window_size"),
    Key::pair("attentionSinkSize", Takes::Integer, "attention_sink_size"),
    Key::read("tensorParallelShards", Takes::Integer),
    Key::variable("hipVisibleDevices", Takes::Text, "HIP_VISIBLE_DEVICES"),
];

const CLUES: &[Clue] = &[
    clue(
        &["insufficient gpu memory"],
        Reason::OutOfMemory,
        "lower maxTotalSeqLength, contextWindowSize or prefillChunkSize, or use a smaller model",
    ),
    clue(
        &["cannot find mlc-chat-config.json"],
        Reason::BadSource,
        "the folder holds no model in MLC's format; use one of the mlc-ai repositories or convert it",
    ),
    clue(
        &["jit is disabled"],
        Reason::InvalidConfig,
        "give the compiled library in modelLibPath, or set jitPolicy: \"ON\"",
    ),
];

impl Engine for MlcLlm {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        &[Api::Chat, Api::Completions]
    }

    fn port(&self) -> u16 {
        8000
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let config = subject.config;
        let model = match &placement.model {
            ModelPlace::Path(path) => path.clone(),
            ModelPlace::Reference(_) => format!("HF://{}", subject.bare_source()),
            ModelPlace::Nothing => {
                let message = "mlc_llm needs a model, and none was fetched";
                return Err(LaunchError::Place(message.to_owned()));
            }
        };
        let listed = Expected::Json { field: "data", value: None };
        let probe = Probe::Http { path: "/v1/models".into(), expected: listed };
        let mut launch = Launch::of("python", placement, probe);
        launch.word("-m").word("mlc_llm").word("serve").word(&model);
        launch.arg("--host", &placement.host).arg("--port", placement.port);
        if let Some(mode) = config.text("mode")? {
            launch.arg("--mode", mode);
        }
        if let Some(device) = config.text("device")? {
            launch.arg("--device", device);
        }
        if let Some(library) = library(config, placement, &model)? {
            launch.arg("--model-lib", library);
        }
        let mut overrides = pairs(config, KEYS)?;
        let shards = config.integer("tensorParallelShards")?;
        let shards = shards.unwrap_or(i64::from(placement.gpu.count));
        if shards > 1 {
            overrides.push(format!("tensor_parallel_shards={shards}"));
        }
        if !overrides.is_empty() {
            launch.arg("--overrides", overrides.join(";"));
        }
        memory_and_compilation(&mut launch, config, placement)?;
        Ok(launch)
    }

    /// MLC's mode `local`, its default, takes 4 at once, `interactive` 1; `server` finds out.
    fn slots(&self, config: Config<'_>) -> Option<u32> {
        let own = config.count("maxNumSequence").ok().flatten().filter(|slots| *slots > 0);
        own.or(match config.text("mode").ok().flatten() {
            Some("server") => None,
            Some("interactive") => Some(1),
            _ => Some(4),
        })
    }

    fn sources(&self) -> &'static [Scheme] {
        FILES
    }

    fn architectures(&self) -> &'static [(&'static str, Support)] {
        &[("gfx906", Support::Experimental)]
    }

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let hint = "name a model in MLC's format by HF://mlc-ai/name, oci://host/name, \
                    file:///path or pvc://claim/path";
        complaints.extend(subject.source_complaint(self.sources(), hint));
        complaints.extend(one_of(subject.config, "mode", &["local", "interactive", "server"]));
        let policies = ["ON", "OFF", "REDO", "READONLY"];
        complaints.extend(one_of(subject.config, "jitPolicy", &policies));
        complaints
    }

    fn clues(&self) -> &'static [Clue] {
        CLUES
    }
}

fn one_of(config: Config<'_>, name: &str, allowed: &[&str]) -> Option<Complaint> {
    let value = config.text(name).ok().flatten()?;
    let message = format!("`{value}` is none of {}", allowed.join(", "));
    (!allowed.contains(&value)).then(|| Complaint::error(format!("spec.config.{name}"), message))
}

/// The compiled library: the one named, or, where compiling is off, the one beside the weights.
fn library(
    config: Config<'_>,
    placement: &Placement,
    model: &str,
) -> Result<Option<String>, Complaint> {
    if let Some(path) = config.text("modelLibPath")? {
        return Ok(Some(path.to_owned()));
    }
    if policy(config, placement)? != Some("READONLY") {
        return Ok(None);
    }
    let gpu = &placement.gpu;
    Ok(match (gpu.vendor, gpu.architecture.as_deref()) {
        (Vendor::Amd, Some(architecture)) => Some(format!("{model}/lib_rocm_{architecture}.so")),
        _ if gpu.is_maxwell() => Some(format!("{model}/maxwell-lib.so")),
        _ => None,
    })
}

/// Maxwell GPUs are too small and too slow to compile on.
fn policy<'a>(config: Config<'a>, placement: &Placement) -> Result<Option<&'a str>, Complaint> {
    let maxwell = placement.gpu.is_maxwell().then_some("READONLY");
    Ok(config.text("jitPolicy")?.or(maxwell))
}

fn memory_and_compilation(
    launch: &mut Launch,
    config: Config<'_>,
    placement: &Placement,
) -> Result<(), Complaint> {
    let maxwell = placement.gpu.is_maxwell().then_some(5_000_000_000);
    if let Some(bytes) = config.integer("gpuMemoryBytes")?.or(maxwell) {
        launch.set("MLC_GPU_SIZE_BYTES", bytes);
    }
    if let Some(policy) = policy(config, placement)? {
        launch.set("MLC_JIT_POLICY", policy);
    }
    Ok(())
}
