//! Ollama: `ollama serve`, steered by variables (docs/faq) and loaded through its own API
//! (docs/api). It pulls models by itself and keeps them in its own store.

use serde_json::{Value, json};

use super::engine::Engine;
use super::explain::{Clue, clue};
use super::keys::{Key, Takes};
use super::{
    Api, Call, Complaint, Config, Expected, Launch, LaunchError, Placement, Platform, Probe,
    ProgressLine, Subject, Vendor,
};
use crate::activation::{Failure, Progress, Reason, Substage};
use crate::sources::Scheme;

pub(super) struct Ollama;

const KEYS: &[Key] = &[
    Key::read("parallel", Takes::Integer),
    Key::variable("contextSize", Takes::Integer, "OLLAMA_CONTEXT_LENGTH"),
    Key::variable("flashAttention", Takes::Flag, "OLLAMA_FLASH_ATTENTION"),
    Key::variable("kvCacheType", Takes::Text, "OLLAMA_KV_CACHE_TYPE"),
    Key::variable("modelsPath", Takes::Text, "OLLAMA_MODELS"),
    Key::variable("hipVisibleDevices", Takes::Text, "HIP_VISIBLE_DEVICES"),
];

/// Waits for the server, pulls the model `$0` where it is missing, and loads it, which a model that only
/// embeds refuses.
const PULL: &str = "until ollama list >/dev/null; do sleep 1; done; \
                    ollama show \"$0\" >/dev/null || ollama pull \"$0\" || exit 1; \
                    ollama run \"$0\" '' </dev/null || true";

const CLUES: &[Clue] = &[
    clue(
        &["requires more system memory"],
        Reason::OutOfMemory,
        "use a smaller model or tag, or a smaller contextSize",
    ),
    clue(
        &["could not create directory"],
        Reason::ProgramNotStarted,
        "ollama cannot write its model store; set modelsPath to a folder it may write",
    ),
];

impl Engine for Ollama {
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
            Api::ImageGenerations,
            Api::AudioSpeech,
            Api::AudioTranscriptions,
            Api::OllamaNative,
        ]
    }

    fn port(&self) -> u16 {
        11434
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let probe = Probe::Http { path: "/".into(), expected: Expected::Text("Ollama is running") };
        let mut launch = Launch::of("ollama", placement, probe);
        launch.word("serve");
        launch.set("OLLAMA_HOST", format!("{}:{}", placement.host, placement.port));
        // When the model goes is decided here, not by ollama's own timer.
        launch.set("OLLAMA_KEEP_ALIVE", -1);
        launch.set("OLLAMA_MAX_LOADED_MODELS", 1);
        launch.set("OLLAMA_NUM_PARALLEL", parallel(subject.config));
        if let Some(store) = &placement.store {
            launch.set("OLLAMA_MODELS", store);
        }
        // A second server on the same store would otherwise prune what the first one downloads.
        launch.set("OLLAMA_NOPRUNE", 1);
        if placement.gpu.vendor == Vendor::Cpu {
            for variable in
                ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GGML_VK_VISIBLE_DEVICES"]
            {
                launch.set(variable, -1);
            }
        }
        let model = subject.bare_source();
        if placement.platform == Platform::Pod {
            let words = ["sh", "-c", PULL, model];
            launch.hook = words.map(str::to_owned).to_vec();
        }
        let mut pull = Call::post("/api/pull", json!({"model": model, "stream": true}));
        pull.streams_progress = true;
        // A model that is there is not asked for again: that would fail without a network.
        pull.unless = Some(Box::new(Call::post("/api/show", json!({"model": model}))));
        launch.after_start.push(pull);
        // A request without a prompt loads the model. A model that only embeds refuses that one.
        let mut load = Call::post("/api/embed", json!({"model": model, "keep_alive": -1}));
        let generate = json!({"model": model, "keep_alive": -1, "stream": false});
        load.unless = Some(Box::new(Call::post("/api/generate", generate)));
        launch.after_start.push(load);
        Ok(launch)
    }

    /// "server busy": its own queue is full.
    fn busy_statuses(&self) -> &'static [u16] {
        &[503]
    }

    fn slots(&self, config: Config<'_>) -> Option<u32> {
        Some(parallel(config))
    }

    fn served_name(&self, subject: &Subject<'_>) -> Option<String> {
        Some(subject.bare_source().to_owned()).filter(|name| !name.is_empty())
    }

    fn vendors(&self) -> &'static [Vendor] {
        &[Vendor::Nvidia, Vendor::Amd, Vendor::Cpu]
    }

    fn sources(&self) -> &'static [Scheme] {
        &[Scheme::Ollama]
    }

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let hint = "name a model of Ollama's registry: ollama://name:tag, or \
                    ollama://hf.co/org/name:quantization for a GGUF of Hugging Face";
        complaints.extend(subject.source_complaint(self.sources(), hint));
        if subject.config.has("servedModelName") {
            complaints.push(Complaint::warning(
                "spec.config.servedModelName",
                "ignored: ollama knows a model only by its registry name; use litellm.aliases",
            ));
        }
        complaints
    }

    fn clues(&self) -> &'static [Clue] {
        CLUES
    }

    fn fetches_model(&self) -> bool {
        true
    }

    fn progress(&self, line: &str) -> ProgressLine {
        let Ok(Value::Object(said)) = serde_json::from_str(line) else {
            return ProgressLine::Nothing;
        };
        if let Some(error) = said.get("error").and_then(Value::as_str) {
            return ProgressLine::Failed(pull_failure(error));
        }
        let Some(status) = said.get("status").and_then(Value::as_str) else {
            return ProgressLine::Nothing;
        };
        let number = |name: &str| said.get(name).and_then(Value::as_u64);
        let done = number("total").map(|total| (number("completed").unwrap_or(0), total));
        let substage = Substage::Downloading;
        ProgressLine::Progress(Progress { substage, done, message: status.to_owned() })
    }
}

/// Ollama's own default is one at a time, too; said aloud so that both sides agree.
fn parallel(config: Config<'_>) -> u32 {
    config.count("parallel").ok().flatten().filter(|slots| *slots > 0).unwrap_or(1)
}

fn pull_failure(error: &str) -> Failure {
    let lower = error.to_lowercase();
    if lower.contains("file does not exist") || lower.contains("not found") {
        let message = format!("ollama's registry does not have it: {error}; check spec.source");
        return Failure::new(Reason::BadSource, message);
    }
    if lower.contains("no space left") {
        let message = format!("ollama's store is full: {error}; make room on the disk");
        return Failure::new(Reason::DiskFull, message);
    }
    if lower.contains("digest mismatch") {
        return Failure::new(
            Reason::DigestMismatch,
            format!("ollama refused the download: {error}"),
        );
    }
    let message = format!("ollama could not pull the model: {error}");
    Failure::new(Reason::DownloadFailed, message)
}
