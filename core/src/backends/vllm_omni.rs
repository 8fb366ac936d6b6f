//! vLLM-Omni: `vllm serve MODEL --omni`, by its CLI guide. Speech, images and text from one server.

use std::time::Duration;

use super::engine::{Engine, MINUTE};
use super::explain::Clue;
use super::keys::{Key, Takes, arguments};
use super::subject::FILES;
use super::{
    Api, Complaint, Config, Launch, LaunchError, MetricNames, Placement, Subject, Support, metrics,
    vllm,
};
use crate::sources::Scheme;

pub(super) struct VllmOmni;

const KEYS: &[Key] = &[
    Key::option("dtype", Takes::Text, "--dtype"),
    Key::option("maxModelLen", Takes::Integer, "--max-model-len"),
    Key::option("gpuMemoryUtilization", Takes::NumberOrText, "--gpu-memory-utilization"),
    Key::read("tensorParallelSize", Takes::Integer),
    Key::when_true("trustRemoteCode", "--trust-remote-code"),
    Key::option("maxNumSeqs", Takes::Integer, "--max-num-seqs"),
    Key::when_true("enforceEager", "--enforce-eager"),
    Key::when_true("vaeUseSlicing", "--vae-use-slicing"),
    Key::when_true("vaeUseTiling", "--vae-use-tiling"),
    Key::variable("hipVisibleDevices", Takes::Text, "HIP_VISIBLE_DEVICES"),
];

impl Engine for VllmOmni {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        &[Api::Chat, Api::Completions, Api::ImageGenerations, Api::ImageEdits, Api::AudioSpeech]
    }

    fn port(&self) -> u16 {
        8000
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let mut launch = vllm::serve(subject, placement)?;
        launch.word("--omni");
        launch.args.extend(arguments(subject.config, KEYS)?);
        Ok(launch)
    }

    fn slots(&self, config: Config<'_>) -> Option<u32> {
        config.count("maxNumSeqs").ok().flatten().filter(|slots| *slots > 0)
    }

    fn idle_timeout(&self) -> Duration {
        10 * MINUTE
    }

    fn drain_limit(&self) -> Duration {
        5 * MINUTE
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

    fn architectures(&self) -> &'static [(&'static str, Support)] {
        vllm::Vllm.architectures()
    }

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        vllm::source_complaints(subject)
    }

    fn clues(&self) -> &'static [Clue] {
        vllm::CLUES
    }
}
