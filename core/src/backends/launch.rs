//! The question every backend answers: given this Model and this place, what has to be started?
//! Local mode makes a process of the answer, the cluster's planning makes a pod template of it.

use std::path::Path;
use std::time::Duration;

use super::Complaint;
use super::probe::Probe;

/// Where an engine is going to run and what it finds there.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// A process on this machine, or a container in a pod.
    pub platform: Platform,
    /// The address to listen on: `127.0.0.1` on a machine, `0.0.0.0` in a pod.
    pub host: String,
    /// The TCP port to listen on.
    pub port: u16,
    /// The model's weights as the engine will find them.
    pub model: ModelPlace,
    /// The GPUs it may use.
    pub gpu: Gpu,
    /// LoRA adapters that will be loaded into it; 0 keeps adapter support switched off.
    pub adapters: u32,
    /// The highest rank among those adapters, where one is known.
    pub adapter_rank: Option<u32>,
    /// The path of this project's own binary: what the simulator backend starts.
    pub simulator_program: Option<String>,
    /// A folder of this engine's own, absolute; [`LaunchFile`]s are written below it.
    pub data_dir: String,
    /// Where an engine that fetches models by itself keeps them; `None` leaves that to the engine.
    pub store: Option<String>,
}

/// The two ways an engine is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// A process of this machine: its program has to be found here.
    Process,
    /// A container: its image may bring an entry point of its own.
    Pod,
}

/// The model's weights, as an engine finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelPlace {
    /// A file or folder on the engine's file system, absolute.
    Path(String),
    /// `spec.source` as written, for engines that fetch by themselves.
    Reference(String),
    /// There is none: the Model names no source.
    Nothing,
}

/// The folder that `file` lies in, if `model` is that file.
pub(super) fn top_of<'m>(model: &'m str, file: &str) -> Option<&'m str> {
    model.strip_suffix(file)?.strip_suffix('/')
}

/// The file named `file` below the folder `model`; `model` itself where it is that file already,
/// or where none is named.
pub(super) fn file_of_model(model: &str, file: Option<&str>) -> String {
    match file {
        Some(file) if !is_gguf(model) && top_of(model, file).is_none() => {
            format!("{}/{file}", model.trim_end_matches('/'))
        }
        _ => model.to_owned(),
    }
}

/// Whether a path or a source names a GGUF file.
pub(super) fn is_gguf(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// The GPUs an engine may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Whose GPUs they are; [`Vendor::Cpu`] is none at all.
    pub vendor: Vendor,
    /// The architecture where known: `sm_89`, `gfx1100`.
    pub architecture: Option<String>,
    /// How many; 0 for [`Vendor::Cpu`].
    pub count: u32,
}

impl Gpu {
    /// No GPU: everything runs on the processor.
    pub const fn none() -> Self {
        Self { vendor: Vendor::Cpu, architecture: None, count: 0 }
    }

    /// Whether these are NVIDIA GPUs of the Maxwell generation, which newer engines do not serve.
    pub fn is_maxwell(&self) -> bool {
        let architecture = self.architecture.as_deref().unwrap_or_default();
        self.vendor == Vendor::Nvidia && architecture.starts_with("sm_5")
    }
}

/// Makers of GPUs, after `gpu.vendor: auto` has been settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Vendor {
    /// NVIDIA: CUDA.
    Nvidia,
    /// AMD: ROCm.
    Amd,
    /// Intel: SYCL and oneAPI.
    Intel,
    /// No GPU.
    Cpu,
}

/// What to start and how to know that it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The program: a name looked up in `PATH`, or a path. Empty where nothing is started (the
    /// external backend) or where a pod's image brings its own entry point.
    pub program: String,
    /// Its arguments, the program's own name not among them.
    pub args: Vec<String>,
    /// Variables set in addition to the environment it inherits.
    pub env: Vec<(String, String)>,
    /// Where the gateway reaches it: the placement's host, or the external engine's.
    pub host: String,
    /// The port the gateway reaches it at.
    pub port: u16,
    /// How to ask whether it serves.
    pub probe: Probe,
    /// What to call, in this order, once the probe has answered; only then is the engine ready.
    pub after_start: Vec<Call>,
    /// What runs in the pod beside the program before the container counts as started: there it does
    /// what `after_start` does on a machine. Empty for nothing.
    pub hook: Vec<String>,
    /// Files to write below the placement's data directory before the program starts.
    pub files: Vec<LaunchFile>,
    /// How long it may take from its start until it is ready. Progress of a download extends it.
    pub startup_limit: Duration,
}

impl Launch {
    /// A launch of `program` at `placement`, so far without arguments.
    pub(super) fn of(program: &str, placement: &Placement, probe: Probe) -> Self {
        Self {
            program: program.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            host: placement.host.clone(),
            port: placement.port,
            probe,
            after_start: Vec::new(),
            hook: Vec::new(),
            files: Vec::new(),
            startup_limit: Duration::ZERO,
        }
    }

    /// Adds `flag value`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass what they have: text or a number"
    )]
    pub(super) fn arg(&mut self, flag: &str, value: impl ToString) -> &mut Self {
        self.args.extend([flag.to_owned(), value.to_string()]);
        self
    }

    /// Adds one word.
    pub(super) fn word(&mut self, word: impl Into<String>) -> &mut Self {
        self.args.push(word.into());
        self
    }

    /// Sets a variable.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass what they have: text or a number"
    )]
    pub(super) fn set(&mut self, name: &str, value: impl ToString) -> &mut Self {
        self.env.push((name.to_owned(), value.to_string()));
        self
    }
}

/// One HTTP request made to a started engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The HTTP method in capitals.
    pub method: &'static str,
    /// The path, starting with `/`.
    pub path: String,
    /// The JSON body; `None` for none.
    pub body: Option<serde_json::Value>,
    /// Whether the answer is a stream of lines that [`super::Backend::progress`] can read.
    pub streams_progress: bool,
    /// If this call is answered with success, the outer one is not needed and is skipped.
    pub unless: Option<Box<Call>>,
}

impl Call {
    /// A POST of `body` to `path` whose answer is read whole.
    pub fn post(path: impl Into<String>, body: serde_json::Value) -> Self {
        Self {
            method: "POST",
            path: path.into(),
            body: Some(body),
            streams_progress: false,
            unless: None,
        }
    }
}

/// A file an engine reads at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFile {
    /// The path below the placement's data directory, without `..`.
    pub path: String,
    /// The whole contents.
    pub contents: String,
}

/// Why a Model cannot be launched at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The Model has to be changed first.
    #[error(transparent)]
    Model(#[from] Complaint),
    /// The place lacks something the engine needs.
    #[error("{0}")]
    Place(String),
}
