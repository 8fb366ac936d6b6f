//! A server on Hugging Face's diffusers, steered by variables only. There is no such program that
//! everybody has: in a pod the image brings its entry point, on a machine `config.command` names it.

use std::time::Duration;

use super::engine::{Engine, MINUTE};
use super::keys::{Key, Takes};
use super::subject::FILES;
use super::{
    Api, Complaint, Config, Launch, LaunchError, ModelPlace, Placement, Platform, Probe, Subject,
    Support, Vendor,
};
use crate::sources::Scheme;

pub(super) struct Diffusers;

const KEYS: &[Key] = &[
    Key::variable("numInferenceSteps", Takes::Integer, "DEFAULT_NUM_INFERENCE_STEPS"),
    Key::variable("guidanceScale", Takes::Number, "DEFAULT_GUIDANCE_SCALE"),
    Key::variable("scheduler", Takes::Text, "DEFAULT_SCHEDULER"),
    Key::variable("negativePrompt", Takes::Text, "DEFAULT_NEGATIVE_PROMPT"),
    Key::variable("useFp16", Takes::Flag, "USE_FP16"),
    Key::variable("vaePath", Takes::Text, "VAE_PATH"),
    Key::read("vaeRepo", Takes::Text),
    Key::variable("pipelineMode", Takes::Text, "PIPELINE_MODE"),
    Key::variable("strength", Takes::Number, "DEFAULT_STRENGTH"),
    Key::variable("imageGuidanceScale", Takes::Number, "DEFAULT_IMAGE_GUIDANCE_SCALE"),
    Key::variable("skipWarmup", Takes::Flag, "SKIP_WARMUP"),
    Key::variable("warmupWidth", Takes::Integer, "WARMUP_WIDTH"),
    Key::variable("warmupHeight", Takes::Integer, "WARMUP_HEIGHT"),
    Key::read("useCpuOffload", Takes::Flag),
    Key::variable("hipVisibleDevices", Takes::Text, "HIP_VISIBLE_DEVICES"),
];

impl Engine for Diffusers {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        &[Api::ImageGenerations, Api::ImageEdits, Api::ImageVariations]
    }

    fn port(&self) -> u16 {
        8000
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let config = subject.config;
        if placement.platform == Platform::Process && !config.has("command") {
            return Err(Complaint::error(
                "spec.config.command",
                "missing; diffusers has no server program of its own: name one that reads \
                 MODEL_ID, HOST and PORT, such as [\"python\", \"/opt/diffusers/server.py\"]",
            )
            .into());
        }
        let model = match &placement.model {
            ModelPlace::Path(path) => path.as_str(),
            ModelPlace::Reference(_) => subject.bare_source(),
            ModelPlace::Nothing => {
                let message = "diffusers needs a model, and none was fetched";
                return Err(LaunchError::Place(message.to_owned()));
            }
        };
        let mut launch = Launch::of("", placement, Probe::success("/health"));
        launch.set("MODEL_ID", model).set("MODEL", model);
        launch.set("HOST", &placement.host).set("PORT", placement.port);
        let offload = config.flag("useCpuOffload")?;
        if let Some(offload) = offload.or((placement.gpu.vendor == Vendor::Amd).then_some(true)) {
            launch.set("USE_CPU_OFFLOAD", offload);
        }
        Ok(launch)
    }

    fn slots(&self, _config: Config<'_>) -> Option<u32> {
        Some(1)
    }

    fn idle_timeout(&self) -> Duration {
        10 * MINUTE
    }

    fn drain_limit(&self) -> Duration {
        5 * MINUTE
    }

    fn sources(&self) -> &'static [Scheme] {
        FILES
    }

    fn architectures(&self) -> &'static [(&'static str, Support)] {
        &[("sm_5", Support::None), ("gfx906", Support::Experimental)]
    }

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        let hint =
            "name a pipeline by HF://org/name, oci://host/name, file:///path or pvc://claim/path";
        subject.source_complaint(self.sources(), hint).into_iter().collect()
    }
}
