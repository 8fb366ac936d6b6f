//! llama.cpp's `llama-server`, by the option table of its `tools/server/README.md`.

use flexinfer_crds::model::QuantizationFormat;

use super::config::field;
use super::engine::Engine;
use super::explain::{Clue, clue};
use super::keys::{Key, Takes, arguments};
use super::launch::{file_of_model, is_gguf, top_of};
use super::{
    Api, Complaint, Config, Expected, Launch, LaunchError, MetricNames, ModelPlace, Placement,
    Platform, Probe, Subject, Vendor,
};
use crate::activation::Reason;
use crate::sources::{Scheme, Source};

pub(super) struct LlamaCpp;

const KEYS: &[Key] = &[
    Key::option("contextSize", Takes::Integer, "--ctx-size"),
    Key::read("nGPULayers", Takes::Integer),
    Key::option("batchSize", Takes::Integer, "--batch-size"),
    Key::option("ubatchSize", Takes::Integer, "--ubatch-size"),
    Key::option("threads", Takes::Integer, "--threads"),
    Key::read("flashAttention", Takes::Switch),
    Key::read("mmproj", Takes::Text),
    Key::option("chatTemplate", Takes::Text, "--chat-template"),
    Key::when_true("jinja", "--jinja"),
    Key::read("device", Takes::Text),
    Key::read("gpuDeviceOrdinal", Takes::Text),
    Key::option("parallel", Takes::Integer, "--parallel"),
    Key::option("cacheTypeK", Takes::Text, "--cache-type-k"),
    Key::option("cacheTypeV", Takes::Text, "--cache-type-v"),
    Key::option("reasoningFormat", Takes::Text, "--reasoning-format"),
    Key::option("reasoningBudget", Takes::Integer, "--reasoning-budget"),
    Key::when_true("embeddings", "--embeddings"),
    Key::when_true("reranking", "--reranking"),
    Key::when_true("metrics", "--metrics"),
    Key::read("fitOff", Takes::Flag),
    Key::variable("hipVisibleDevices", Takes::Text, "HIP_VISIBLE_DEVICES"),
];

const METRICS: MetricNames = MetricNames {
    path: "/metrics",
    running: &["llamacpp:requests_processing"],
    waiting: &["llamacpp:requests_deferred"],
    kv_cache_usage: &["llamacpp:kv_cache_usage_ratio"],
    prefix_hits: &[],
    prefix_queries: &[],
    generated_tokens: &["llamacpp:tokens_predicted_total"],
};

const CLUES: &[Clue] = &[
    clue(
        &["couldn't bind"],
        Reason::PortTaken,
        "another program took the port first; it will be tried again with another port",
    ),
    clue(
        &["unknown model architecture"],
        Reason::InvalidConfig,
        "this llama-server is older than the model; update llama.cpp",
    ),
    clue(
        &["invalid magic"],
        Reason::BadSource,
        "the file is no GGUF; spec.source has to name a .gguf file",
    ),
    clue(
        &["gguf file is version", "only supports up to"],
        Reason::InvalidConfig,
        "the file is newer than this llama-server; update llama.cpp",
    ),
    clue(
        &["failed to load multimodal model"],
        Reason::BadSource,
        "the projector does not fit the model or cannot be read; check mmproj",
    ),
    clue(
        &["failed to load gguf split"],
        Reason::BadSource,
        "a part of the model is missing; all parts have to lie in one folder",
    ),
    clue(
        &["not within the file bounds"],
        Reason::BadSource,
        "the file is cut short; download it again",
    ),
    clue(
        &["failed to open gguf file"],
        Reason::BadSource,
        "the file is missing or may not be read; check spec.source",
    ),
    clue(
        &["failed to allocate", "buffer"],
        Reason::OutOfMemory,
        "use a smaller contextSize, fewer nGPULayers or a more quantized file",
    ),
    clue(
        &["unable to allocate"],
        Reason::OutOfMemory,
        "use a smaller contextSize, fewer nGPULayers or a more quantized file",
    ),
    clue(
        &["erroroutofdevicememory"],
        Reason::OutOfMemory,
        "use a smaller contextSize, fewer nGPULayers or a more quantized file",
    ),
    clue(
        &["error: invalid argument:"],
        Reason::InvalidConfig,
        "this version of llama-server does not know the option; remove it or update llama.cpp",
    ),
    clue(
        &["error while handling argument"],
        Reason::InvalidConfig,
        "correct the option's value in spec.config",
    ),
];

impl Engine for LlamaCpp {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        &[
            Api::Chat,
            Api::Completions,
            Api::Embeddings,
            Api::Responses,
            Api::Messages,
            Api::AudioTranscriptions,
            Api::Rerank,
            Api::Tokenize,
            Api::LlamaCppNative,
        ]
    }

    fn port(&self) -> u16 {
        8080
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let config = subject.config;
        let ModelPlace::Path(place) = &placement.model else {
            let message = "llama-server reads a .gguf file from disk, and none was fetched";
            return Err(LaunchError::Place(message.to_owned()));
        };
        let cpu = placement.gpu.vendor == Vendor::Cpu;
        let probe = Probe::Http {
            path: "/health".into(),
            expected: Expected::Json { field: "status", value: Some("ok") },
        };
        // Its images have the program outside of PATH and name it as their entry point.
        let program = if placement.platform == Platform::Pod { "" } else { "llama-server" };
        let mut launch = Launch::of(program, placement, probe);
        let file = subject.file();
        let model = file_of_model(place, file.as_deref());
        launch.arg("--host", &placement.host).arg("--port", placement.port);
        launch.arg("--model", &model);
        // Without an alias the answers name the file's path on this machine.
        launch.arg("--alias", self.served_name(subject).unwrap_or_else(|| subject.name.to_owned()));
        let layers = config.integer("nGPULayers")?.unwrap_or(999);
        launch.arg("--n-gpu-layers", if cpu { 0 } else { layers });
        launch.args.extend(arguments(config, KEYS)?);
        if let Some(projector) = config.text("mmproj")? {
            launch.arg("--mmproj", beside(place, file.as_deref(), projector));
        }
        if let Some(attention) = config.switch("flashAttention")?
            && !cpu
        {
            launch.arg("--flash-attn", attention);
        }
        let device = config.text("device")?.or(config.text("gpuDeviceOrdinal")?);
        if let Some(device) = device {
            launch.arg("--device", device);
        }
        if config.flag("fitOff")? == Some(true) {
            launch.arg("--fit", "off");
        }
        Ok(launch)
    }

    /// "Loading model", or no slot is free.
    fn busy_statuses(&self) -> &'static [u16] {
        &[503]
    }

    /// Unset, llama-server takes four slots over one shared KV cache.
    fn slots(&self, config: Config<'_>) -> Option<u32> {
        Some(config.count("parallel").ok().flatten().filter(|slots| *slots > 0).unwrap_or(4))
    }

    fn metrics(&self) -> Option<&'static MetricNames> {
        Some(&METRICS)
    }

    fn vendors(&self) -> &'static [Vendor] {
        &[Vendor::Nvidia, Vendor::Amd, Vendor::Intel, Vendor::Cpu]
    }

    /// What Ollama's registry holds is a GGUF file as well.
    fn sources(&self) -> &'static [Scheme] {
        &[Scheme::HuggingFace, Scheme::File, Scheme::Pvc, Scheme::Oci, Scheme::Ollama]
    }

    fn quantizations(&self) -> &'static [QuantizationFormat] {
        &[QuantizationFormat::Gguf]
    }

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let hint = "name a .gguf file by file:///path/model.gguf, pvc://claim/path, HF://org/name or \
                    oci://host/name";
        complaints.extend(subject.source_complaint(self.sources(), hint));
        complaints.extend(gguf_complaint(subject));
        complaints
    }

    fn clues(&self) -> &'static [Clue] {
        CLUES
    }
}

/// `projector` in the folder of the source, whose file is `file`; a path of its own stays.
fn beside(place: &str, file: Option<&str>, projector: &str) -> String {
    if projector.starts_with('/') {
        return projector.to_owned();
    }
    let top = file.and_then(|file| top_of(place, file));
    let parent = || place.rsplit_once('/').map(|(parent, _)| parent).filter(|_| is_gguf(place));
    let folder = top.or_else(parent).unwrap_or(place);
    format!("{}/{projector}", folder.trim_end_matches('/'))
}

/// The file within a repository or an artifact has to be named, and has to be a GGUF.
fn gguf_complaint(subject: &Subject<'_>) -> Option<Complaint> {
    let source = subject.parsed_source();
    let from_hub = matches!(source, Some(Source::HuggingFace(_)));
    match subject.file_option() {
        Some((name, file)) if file.split('/').any(|part| part == "..") => Some(Complaint::error(
            field(name),
            format!("`{file}` leaves the repository; write the path below its top"),
        )),
        Some((name, file)) if !is_gguf(file) => Some(Complaint::error(
            field(name),
            format!("`{file}` does not end in .gguf, the only format llama-server reads"),
        )),
        // What is made of the repository is one file, whose name is known.
        None if subject.quantized.is_some() => None,
        None if from_hub && !is_gguf(subject.source) => Some(Complaint::error(
            field("ggufFile"),
            "missing; a repository holds many files, name the one to load: ggufFile: \
             model-Q4_K_M.gguf",
        )),
        None if matches!(source, Some(Source::Oci(_))) => Some(Complaint::error(
            field("ggufFile"),
            "missing; an artifact may hold many files, name the one to load; where the artifact names none it is \
             ggufFile: model.gguf",
        )),
        Some(_) | None => None,
    }
}
