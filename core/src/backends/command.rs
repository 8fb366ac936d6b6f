//! Any other engine: the program of `config.command`, with `{port}`, `{host}` and `{model}` filled
//! in. What it serves is not known, so that nothing is kept from it.

use flexinfer_crds::model::QuantizationFormat;

use super::engine::Engine;
use super::keys::{Key, Takes};
use super::subject::{EVERY_FORMAT, FILES};
use super::{Api, Complaint, Config, Launch, LaunchError, Placement, Probe, Subject, Vendor};
use crate::sources::Scheme;

pub(super) struct Command;

/// `config.probe`: the path to ask, or `tcp` for an engine that has none.
pub(super) const PROBE: Key = Key::read("probe", Takes::Text);

const KEYS: &[Key] =
    &[PROBE, Key::read("contextSize", Takes::Integer), Key::read("maxModelLen", Takes::Integer)];

pub(super) const EVERY_API: &[Api] = &[
    Api::Chat,
    Api::Completions,
    Api::Embeddings,
    Api::Responses,
    Api::StoredResponses,
    Api::ImageGenerations,
    Api::ImageEdits,
    Api::ImageVariations,
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
    Api::LlamaCppNative,
    Api::SdApi,
    Api::ComfyUi,
];

impl Engine for Command {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        EVERY_API
    }

    fn port(&self) -> u16 {
        8000
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        // The program and its arguments are put in with those of every backend.
        Ok(Launch::of("", placement, probe(subject.config, "/health")?))
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

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        complaints.extend(probe(subject.config, "/").err());
        if !subject.config.has("command") {
            let message = "missing; write the program to start, such as [\"my-server\", \"--port\", \
                           \"{port}\"]";
            complaints.push(Complaint::error("spec.config.command", message));
        }
        complaints
    }
}

/// The probe that `config.probe` asks for, else GET `path`.
pub(super) fn probe(config: Config<'_>, path: &str) -> Result<Probe, Complaint> {
    match config.text("probe")? {
        None => Ok(Probe::success(path)),
        Some("tcp") => Ok(Probe::Tcp),
        Some(path) if path.starts_with('/') => Ok(Probe::success(path)),
        Some(other) => Err(Complaint::error(
            "spec.config.probe",
            format!("`{other}` is neither a path such as /health nor tcp"),
        )),
    }
}
