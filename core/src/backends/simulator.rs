//! This project's engine without a GPU: `flexinfer-gateway simulate`.

use serde_json::{Value, json};

use flexinfer_crds::model::QuantizationFormat;

use super::engine::Engine;
use super::keys::{Key, Takes, arguments};
use super::subject::{EVERY_FORMAT, FILES};
use super::vllm::Vllm;
use super::{
    Api, Call, Complaint, Config, Expected, Launch, LaunchError, MetricNames, ModelPlace,
    Placement, Probe, Subject, Vendor, metrics,
};
use crate::sources::Scheme;

pub(super) struct Simulator;

/// The flags of `simulate`; durations go through as they are, since it also knows microseconds.
const KEYS: &[Key] = &[
    Key::option("seed", Takes::Integer, "--seed"),
    Key::option("slots", Takes::Integer, "--slots"),
    Key::option("answerTokens", Takes::Integer, "--answer-tokens"),
    Key::option("contextSize", Takes::Integer, "--context-window"),
    Key::option("prefixCacheBlocks", Takes::Integer, "--prefix-cache-blocks"),
    Key::option("loadTime", Takes::Text, "--load-time"),
    Key::option("timeToFirstToken", Takes::Text, "--time-to-first-token"),
    Key::option("timePerToken", Takes::Text, "--time-per-token"),
    Key::option("timePerPromptToken", Takes::Text, "--time-per-prompt-token"),
    Key::option("imageTimePerStep", Takes::Text, "--image-time-per-step"),
    Key::option("keepAlive", Takes::Text, "--keep-alive"),
    Key::option("dieWhileLoading", Takes::Text, "--die-while-loading"),
    Key::when_true("hangWhileLoading", "--hang-while-loading"),
    Key::option("whileLoading", Takes::Text, "--while-loading"),
    Key::when_true("lieAboutReadiness", "--lie-about-readiness"),
    Key::when_true("neverOpenPort", "--never-open-port"),
    Key::when_true("garbageHealth", "--garbage-health"),
    Key::option("busy", Takes::NumberOrText, "--busy"),
    Key::option("cutAfterTokens", Takes::Integer, "--cut-after-tokens"),
    Key::option("cut", Takes::Text, "--cut"),
    Key::option("headerDelay", Takes::Text, "--header-delay"),
    Key::when_true("neverAnswer", "--never-answer"),
    Key::when_true("duplicateKeys", "--duplicate-keys"),
    Key::when_true("oneByteWrites", "--one-byte-writes"),
    Key::when_true("logRequests", "--log-requests"),
    Key::when_true("allowRequestFaults", "--allow-request-faults"),
];

impl Engine for Simulator {
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
            Api::ImageGenerations,
            Api::ImageEdits,
            Api::AudioSpeech,
            Api::AudioTranscriptions,
            Api::AudioTranslations,
            Api::Moderations,
            Api::Rerank,
            Api::Score,
            Api::Realtime,
            Api::Messages,
            Api::Tokenize,
            Api::OllamaNative,
            Api::SdApi,
            Api::ComfyUi,
        ]
    }

    fn port(&self) -> u16 {
        8000
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let Some(program) = &placement.simulator_program else {
            let message = "the simulator is a part of the gateway's own program, and its path is \
                           not known here";
            return Err(LaunchError::Place(message.to_owned()));
        };
        let healthy = Expected::Json { field: "status", value: Some("ok") };
        let probe = Probe::Http { path: "/health".into(), expected: healthy };
        let mut launch = Launch::of(program, placement, probe);
        launch.word("simulate");
        launch.arg("--host", &placement.host).arg("--port", placement.port);
        launch.arg("--model", name(subject));
        if let ModelPlace::Path(path) = &placement.model {
            launch.arg("--model-path", path);
        }
        launch.args.extend(arguments(subject.config, KEYS)?);
        Ok(launch)
    }

    fn busy_statuses(&self) -> &'static [u16] {
        &[429, 503]
    }

    /// As many as vLLM takes.
    fn slots(&self, config: Config<'_>) -> Option<u32> {
        Some(config.count("slots").ok().flatten().filter(|slots| *slots > 0).unwrap_or(256))
    }

    fn served_name(&self, subject: &Subject<'_>) -> Option<String> {
        Some(name(subject))
    }

    fn metrics(&self) -> Option<&'static MetricNames> {
        Some(&metrics::VLLM)
    }

    fn vendors(&self) -> &'static [Vendor] {
        &[Vendor::Nvidia, Vendor::Amd, Vendor::Intel, Vendor::Cpu]
    }

    fn sources(&self) -> &'static [Scheme] {
        FILES
    }

    fn quantizations(&self) -> &'static [QuantizationFormat] {
        EVERY_FORMAT
    }

    fn check(&self, _subject: &Subject<'_>) -> Vec<Complaint> {
        Vec::new()
    }

    fn load_adapter(&self, name: &str, path: &str) -> Option<Call> {
        Some(Call::post("/v1/load_lora_adapter", json!({"lora_name": name, "lora_path": path})))
    }

    fn unload_adapter(&self, name: &str) -> Option<Call> {
        Some(Call::post("/v1/unload_lora_adapter", json!({"lora_name": name})))
    }

    fn adapter_is_loaded_already(&self, status: u16, answer: &Value) -> bool {
        Vllm.adapter_is_loaded_already(status, answer)
    }
}

/// It answers to one name, as vLLM does, and has no source whose name would be better than its own.
fn name(subject: &Subject<'_>) -> String {
    let own = subject.config.text("servedModelName").ok().flatten();
    own.unwrap_or(subject.name).to_owned()
}
