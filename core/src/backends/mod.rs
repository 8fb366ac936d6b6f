//! Engines: one file each, one enum, one registry arm. A backend says what to start for a Model at a
//! place ([`Backend::launch`]), how to know that it serves, which APIs it has, what its numbers and
//! its errors mean. It decides and never acts: local mode makes a process of the answer, the
//! cluster's planning a pod template. To add one, see `docs/recipes/add-a-backend.md`.

mod api;
mod architectures;
mod command_line;
mod complaint;
mod config;
mod engine;
mod explain;
mod keys;
mod launch;
mod metrics;
mod names;
mod probe;
mod progress;
mod quantizing;
mod subject;

mod comfyui;
mod command;
mod diffusers;
mod external;
mod llamacpp;
mod mlc_llm;
mod ollama;
mod simulator;
mod vllm;
mod vllm_omni;

#[cfg(test)]
mod tests;

use std::time::Duration;

use flexinfer_crds::model::QuantizationFormat;

use crate::activation::Failure;
use crate::sources::Scheme;

pub use api::Api;
pub use architectures::Support;
pub use complaint::Complaint;
pub use config::Config;
pub use explain::Exit;
pub use launch::{
    Call, Gpu, Launch, LaunchError, LaunchFile, ModelPlace, Placement, Platform, Vendor,
};
pub use metrics::MetricNames;
pub use names::UnknownBackend;
pub use probe::{Expected, Probe, Verdict};
pub use progress::ProgressLine;
pub use subject::Subject;

use engine::Engine;

/// Everything that can serve a model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter, strum::IntoStaticStr, strum::Display,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Backend {
    /// llama.cpp's `llama-server`.
    #[strum(serialize = "llamacpp")]
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// vLLM.
    Vllm,
    /// MLC LLM.
    MlcLlm,
    /// A server on Hugging Face's diffusers.
    Diffusers,
    /// ComfyUI.
    #[strum(serialize = "comfyui")]
    ComfyUi,
    /// vLLM-Omni.
    VllmOmni,
    /// This project's engine without a GPU.
    Simulator,
    /// An engine that already runs at `config.url`; never started, never stopped.
    External,
    /// Any other engine: the program of `config.command`.
    Command,
}

impl Backend {
    /// The registry: one arm for each backend.
    fn engine(self) -> &'static dyn Engine {
        match self {
            Self::LlamaCpp => &llamacpp::LlamaCpp,
            Self::Ollama => &ollama::Ollama,
            Self::Vllm => &vllm::Vllm,
            Self::MlcLlm => &mlc_llm::MlcLlm,
            Self::Diffusers => &diffusers::Diffusers,
            Self::ComfyUi => &comfyui::ComfyUi,
            Self::VllmOmni => &vllm_omni::VllmOmni,
            Self::Simulator => &simulator::Simulator,
            Self::External => &external::External,
            Self::Command => &command::Command,
        }
    }

    /// What to start for `model` at `placement`, with the user's own program, arguments and
    /// variables applied: `config.command` replaces the program, `config.args` come last, and
    /// `config.env` wins over what the backend sets.
    pub fn launch<'a>(
        self,
        model: impl Into<Subject<'a>>,
        placement: &Placement,
    ) -> Result<Launch, LaunchError> {
        let subject = model.into();
        let engine = self.engine();
        if let Some(error) = self.check(subject).into_iter().find(|complaint| !complaint.warning) {
            return Err(error.into());
        }
        if placement.platform == Platform::Process && subject.quantized.is_some() {
            return Err(quantizing::only_on_clusters().into());
        }
        let mut launch = engine.launch(&subject, placement)?;
        if !self.starts_engine() {
            return Ok(launch);
        }
        let own = command_line::CommandLine::read(subject.config, placement)?;
        if let Some((program, mut first)) = own.command {
            launch.program = program;
            first.append(&mut launch.args);
            launch.args = first;
        }
        launch.args.extend(own.args);
        launch.env.extend(keys::variables(subject.config, engine.keys())?);
        launch.env.retain(|(name, _)| own.env.iter().all(|(own, _)| own != name));
        launch.env.extend(own.env);
        launch.startup_limit = self.startup_limit(subject.config);
        Ok(launch)
    }

    /// Everything that is wrong with the Model from this backend's point of view, and what its
    /// author should know. All of it at once.
    pub fn check<'a>(self, model: impl Into<Subject<'a>>) -> Vec<Complaint> {
        let subject = model.into();
        let engine = self.engine();
        let mut complaints = keys::check(subject.config, engine.keys());
        complaints.extend(command_line::command_words(subject.config).err());
        complaints.extend(engine.check(&subject));
        complaints.extend(subject.loose_source());
        complaints.extend(quantizing::complaint(self, &subject));
        if subject.config.duration("startupTimeout") == Ok(Some(Duration::ZERO)) {
            let message = "no engine starts in no time; write for example 5m, or leave it out";
            complaints.push(Complaint::error(config::field("startupTimeout"), message));
        }
        if !subject.wants_gpu && !engine.vendors().contains(&Vendor::Cpu) {
            let message =
                format!("{} is made for GPUs; say which with `gpu: {{count: 1}}`", self.name());
            complaints.push(Complaint::warning("spec.gpu", message));
        }
        complaints.dedup();
        complaints
    }

    /// Whether there is an engine to start and stop; false only for [`Backend::External`].
    pub fn starts_engine(self) -> bool {
        self != Self::External
    }

    /// Whether the engine downloads the model by itself, so that it is launched with
    /// [`ModelPlace::Reference`] and nothing is fetched for it.
    pub fn fetches_model(self) -> bool {
        self.engine().fetches_model()
    }

    /// The API families it serves, whatever the model; the model may still refuse some.
    pub fn apis(self) -> &'static [Api] {
        self.engine().apis()
    }

    /// The schemes of sources it can load; empty where it needs no source.
    pub fn sources(self) -> &'static [Scheme] {
        self.engine().sources()
    }

    /// The formats of quantized weights it can load; empty where it loads none that were made for it.
    pub fn quantizations(self) -> &'static [QuantizationFormat] {
        self.engine().quantizations()
    }

    /// The port that the engine's own documentation names: what containers listen on.
    pub fn port(self) -> u16 {
        self.engine().port()
    }

    /// Requests that one engine works on at once under these options; `None` where it takes
    /// whatever comes and queues by itself.
    pub fn slots(self, config: Config<'_>) -> Option<u32> {
        self.engine().slots(config)
    }

    /// The option by which an engine is told how many sequences it works on at once.
    pub const SEQUENCES: &str = "maxNumSeqs";

    /// Sequences that the engine works on at once under these options, where it can be told how many.
    pub fn sequences(self, config: Config<'_>) -> Option<u32> {
        let told = self.engine().keys().iter().any(|key| key.name == Self::SEQUENCES);
        self.slots(config).filter(|_| told)
    }

    /// The statuses by which the engine says that it can take nothing now and has not begun, besides
    /// 503 with `Retry-After`.
    pub fn busy_statuses(self) -> &'static [u16] {
        self.engine().busy_statuses()
    }

    /// How long nothing may be in flight before the model sleeps, where the Model does not say.
    pub fn idle_timeout(self) -> Duration {
        self.engine().idle_timeout()
    }

    /// How long the engine may take from its start until it is ready: `config.startupTimeout`, else
    /// the backend's default.
    pub fn startup_limit(self, config: Config<'_>) -> Duration {
        let own = config.duration("startupTimeout").ok().flatten();
        own.unwrap_or_else(|| self.engine().startup_limit())
    }

    /// How long a leaving engine may finish what it serves, where the Model does not say.
    pub fn drain_limit(self) -> Duration {
        self.engine().drain_limit()
    }

    /// The model name that the engine insists on in a request's body; `None` where any will do.
    pub fn served_name<'a>(self, model: impl Into<Subject<'a>>) -> Option<String> {
        self.engine().served_name(&model.into())
    }

    /// The name that the engine's certificate must be for under these options; `None` where it is spoken
    /// to without TLS.
    pub fn tls_name(self, config: Config<'_>) -> Option<String> {
        self.engine().tls_name(config)
    }

    /// What its metrics are called; `None` where it has none.
    pub fn metrics(self) -> Option<&'static MetricNames> {
        self.engine().metrics()
    }

    /// The makers of GPUs it runs on.
    pub fn vendors(self) -> &'static [Vendor] {
        self.engine().vendors()
    }

    /// How well it runs on GPUs of `architecture`, such as `sm_89` or `gfx1100`.
    pub fn support(self, architecture: &str) -> Support {
        architectures::support(self.engine().architectures(), architecture)
    }

    /// What the engine's end means, told so that a person can act on it.
    pub fn explain(self, exit: Exit, last_lines: &[String]) -> Failure {
        explain::explain(self.name(), self.engine().clues(), exit, last_lines)
    }

    /// What one line of the streamed answer to a [`Call`] means.
    pub fn progress(self, line: &str) -> ProgressLine {
        self.engine().progress(line)
    }

    /// The call that loads the LoRA adapter `name` from `path`; `None` where the engine has no such
    /// thing.
    pub fn load_adapter(self, name: &str, path: &str) -> Option<Call> {
        self.engine().load_adapter(name, path)
    }

    /// The call that takes the LoRA adapter `name` out again.
    pub fn unload_adapter(self, name: &str) -> Option<Call> {
        self.engine().unload_adapter(name)
    }

    /// Whether the refusal `answer` to loading an adapter only says that it is loaded already.
    pub fn adapter_is_loaded_already(self, status: u16, answer: &serde_json::Value) -> bool {
        self.engine().adapter_is_loaded_already(status, answer)
    }
}
