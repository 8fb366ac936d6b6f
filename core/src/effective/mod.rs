//! A Model with every default applied: the one place where defaults meet a spec.

mod protocol;

use std::sync::Arc;
use std::time::Duration;

use flexinfer_crds::model::{Gpu, Serverless, Vendor, WarmPolicy};
use flexinfer_crds::{Model, keys};
use strum::VariantNames as _;

use crate::backends::{Backend, Complaint, Config, Subject};
use crate::ids::{GroupId, ModelId};
use crate::routing::Strategy;

pub use protocol::{EngineProtocol, Spoken};

/// What a Model means once its own values, its backend's defaults and the process's defaults are
/// put together. Everything that serves a model reads this and never the raw spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// Which Model this is.
    pub id: ModelId,
    /// `metadata.generation` on a cluster, a counter of edits in local mode.
    pub generation: u64,
    /// The group whose members share a GPU; a model that shares with nobody is alone.
    pub group: GroupId,
    /// `gpu.priority`, 0..=1000, default 100.
    pub priority: i32,
    /// `gpu.forcePromotion`.
    pub force_promotion: bool,
    /// `gpu.warmPolicy: primary`.
    pub warm_primary: bool,
    /// `gpu.swapCooldown`, default 5 minutes; the group uses the largest of its members.
    pub swap_cooldown: Duration,
    /// `gpu.vramEstimateMB` in MiB, for the sum of the model's GPUs.
    pub vram_estimate_mib: Option<u64>,
    /// `gpu.drainTimeout`: how long a leaving model may finish what it serves.
    pub drain_limit: Duration,
    /// Engines that stay up without any request.
    pub min_replicas: u32,
    /// The most engines that load may ask for; never below `min_replicas`, never zero.
    pub max_replicas: u32,
    /// The annotation `flexinfer.ai/autoscaler: external`: how many engines there are is somebody else's to say.
    pub scaled_elsewhere: bool,
    /// How long nothing may be in flight before the model goes to sleep.
    pub idle_timeout: Duration,
    /// `serverless.coldStartTimeout`, if the Model says one.
    pub cold_start_timeout: Option<Duration>,
    /// How long one engine may take from its start until its probe answers.
    pub startup_limit: Duration,
    /// `config.preloadOnDeploy` of a model that shares with nobody.
    pub preload: bool,
    /// Requests at once per engine; `None` is no limit.
    pub slots: Option<u32>,
    /// The annotation `flexinfer.ai/max-queue`, if set: 0 is no queue.
    pub max_queue: Option<u32>,
    /// The name the engine itself knows the model by, written into the request where it differs.
    pub served_name: Option<String>,
    /// `litellm.servedModelName` and `litellm.aliases`, trimmed, without duplicates.
    pub aliases: Vec<String>,
    /// `serviceLabels`.
    pub service_labels: Vec<String>,
    /// The tokens of context that the engine is told to hold, where the Model says.
    pub context_window: Option<u32>,
    /// The annotation `flexinfer.ai/admission: context-bounded`: what cannot fit is refused.
    pub context_bounded: bool,
    /// `config.maxInputTokens` and `config.maxOutputTokens`, each at most the context window; for
    /// clients that ask, not enforced.
    pub max_input_tokens: Option<u32>,
    /// See `max_input_tokens`.
    pub max_output_tokens: Option<u32>,
    /// The annotation `flexinfer.ai/serve-paths`: the only paths, with what lies under them, that the
    /// model is asked at. Empty for all.
    pub serve_paths: Vec<String>,
    /// The annotation `flexinfer.ai/routing`, if set.
    pub routing: Option<Strategy>,
    /// `config.apiKeySecret`: the file, among those the gateway keeps for engines, with the key that this
    /// engine wants of its clients.
    pub api_key_secret: Option<String>,
    /// How the engine is spoken to: `config.engineProtocol`, and by TLS where its url is https.
    pub spoken: Spoken,
    /// `litellm.enabled: false`: the model answers to nobody and is not listed.
    pub parked: bool,
}

/// What the process says where a Model does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The namespace of a Model whose file names none.
    pub namespace: Arc<str>,
}

impl Default for Defaults {
    /// Namespace `default`.
    fn default() -> Self {
        Self { namespace: "default".into() }
    }
}

/// `gpu.priority` of a model that says none.
pub(crate) const PRIORITY: i32 = 100;

/// `gpu.swapCooldown` of a model that says none.
pub(crate) const SWAP_COOLDOWN: flexinfer_crds::Duration =
    flexinfer_crds::Duration::from_secs(5 * 60);

impl Effective {
    /// What `model` means; `generation` tells its edits apart. Otherwise everything that keeps it
    /// from meaning anything, each with the field and what to do.
    pub fn of(model: &Model, generation: u64, defaults: &Defaults) -> Result<Self, Vec<Complaint>> {
        let spec = &model.spec;
        let mut complaints = Vec::new();
        let name = wanted(name_of(model).map(Some), &mut complaints).unwrap_or_default();
        let backend = wanted(backend_of(model).map(Some), &mut complaints);
        let config = Config::of(Some(&spec.config));
        let preload = wanted(config.flag("preloadOnDeploy"), &mut complaints).unwrap_or(false);
        let slots = wanted(max_concurrency(config), &mut complaints);
        let max_queue = wanted(max_queue(model), &mut complaints);
        let context_bounded = wanted(context_bounded(model), &mut complaints);
        let serve_paths = wanted(serve_paths(model).map(Some), &mut complaints).unwrap_or_default();
        let api_key_secret = wanted(api_key_secret(config), &mut complaints);
        let spoken = backend.map(|backend| protocol::of(backend, config).map(Some));
        let spoken = spoken.and_then(|spoken| wanted(spoken, &mut complaints));
        let most = |key| config.count(key).map(|most| within(most, config.context_window()));
        let max_input_tokens = wanted(most("maxInputTokens"), &mut complaints);
        let max_output_tokens = wanted(most("maxOutputTokens"), &mut complaints);
        let routing = wanted(routing(model), &mut complaints);
        let (Some(backend), true) = (backend, complaints.is_empty()) else {
            return Err(complaints);
        };

        let namespace = model.metadata.namespace.as_deref().unwrap_or(&defaults.namespace);
        let id = ModelId::new(namespace, name);
        let group = group_of(&id, spec.gpu.as_ref());
        let shared = matches!(group, GroupId::Shared { .. });
        let gpu = spec.gpu.clone().unwrap_or_default();
        let serverless = spec.serverless.clone().unwrap_or_default();
        let litellm = spec.litellm.clone().unwrap_or_default();
        let (min_replicas, max_replicas) = replicas(&serverless);
        Ok(Self {
            generation,
            group,
            priority: gpu.priority.unwrap_or(PRIORITY),
            force_promotion: gpu.force_promotion == Some(true),
            warm_primary: gpu.warm_policy == Some(WarmPolicy::Primary),
            swap_cooldown: gpu.swap_cooldown.unwrap_or(SWAP_COOLDOWN).into(),
            vram_estimate_mib: vram_estimate(&gpu),
            drain_limit: gpu.drain_timeout.map_or_else(|| backend.drain_limit(), Into::into),
            min_replicas,
            max_replicas,
            scaled_elsewhere: scaled_elsewhere(model),
            idle_timeout: idle_timeout(&serverless, backend),
            cold_start_timeout: serverless.cold_start_timeout.map(Into::into),
            startup_limit: backend.startup_limit(config),
            preload: preload && !shared,
            slots: slots.or_else(|| backend.slots(config)),
            max_queue,
            served_name: backend.served_name(model),
            aliases: distinct(litellm.served_model_name.iter().chain(&litellm.aliases), name),
            service_labels: distinct(&spec.service_labels, ""),
            context_window: config.context_window(),
            context_bounded: context_bounded.unwrap_or(false),
            max_input_tokens,
            max_output_tokens,
            serve_paths,
            api_key_secret,
            spoken: spoken.unwrap_or_default(),
            routing,
            parked: litellm.enabled == Some(false),
            id,
        })
    }
}

fn idle_timeout(serverless: &Serverless, backend: Backend) -> Duration {
    serverless.idle_timeout.map_or_else(|| backend.idle_timeout(), Into::into)
}

fn name_of(model: &Model) -> Result<&str, Complaint> {
    let name = model.metadata.name.as_deref().filter(|name| !name.is_empty());
    name.ok_or_else(|| Complaint::error("metadata.name", "missing; give the model a name"))
}

/// The value, or nothing and one more complaint.
fn wanted<T>(read: Result<Option<T>, Complaint>, complaints: &mut Vec<Complaint>) -> Option<T> {
    read.unwrap_or_else(|complaint| {
        complaints.push(complaint);
        None
    })
}

fn backend_of(model: &Model) -> Result<Backend, Complaint> {
    Backend::of(model).map_err(|error| {
        let message = error.to_string();
        let message = message.strip_prefix("spec.backend: ").unwrap_or(&message);
        Complaint::error("spec.backend", message)
    })
}

fn max_concurrency(config: Config<'_>) -> Result<Option<u32>, Complaint> {
    match config.count("maxConcurrency")? {
        Some(0) => Err(Complaint::error(
            "spec.config.maxConcurrency",
            "0 would let no request through; write how many an engine takes at once, or leave it out",
        )),
        slots => Ok(slots),
    }
}

/// Whether another autoscaler says how many engines there are.
pub(crate) fn scaled_elsewhere(model: &Model) -> bool {
    let annotations = model.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(keys::AUTOSCALER)).is_some_and(|who| who == "external")
}

fn max_queue(model: &Model) -> Result<Option<u32>, Complaint> {
    let annotations = model.metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|all| all.get(keys::MAX_QUEUE)) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| {
        let field = format!("metadata.annotations[{}]", keys::MAX_QUEUE);
        let message = format!("`{text}` is not a number of requests; write \"0\" or more");
        Complaint::error(field, message)
    })
}

fn context_bounded(model: &Model) -> Result<Option<bool>, Complaint> {
    let annotations = model.metadata.annotations.as_ref();
    match annotations.and_then(|all| all.get(keys::ADMISSION)).map(|text| text.trim()) {
        None | Some("") => Ok(None),
        Some("context-bounded") => Ok(Some(true)),
        Some(other) => {
            let field = format!("metadata.annotations[{}]", keys::ADMISSION);
            let message =
                format!("`{other}` is not known; write \"context-bounded\" or leave it out");
            Err(Complaint::error(field, message))
        }
    }
}

fn serve_paths(model: &Model) -> Result<Vec<String>, Complaint> {
    let annotations = model.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(keys::SERVE_PATHS));
    let paths = text.map(String::as_str).unwrap_or_default().split(',').map(str::trim);
    let paths: Vec<String> = paths.filter(|path| !path.is_empty()).map(str::to_owned).collect();
    match paths.iter().find(|path| !path.starts_with('/')) {
        None => Ok(paths),
        Some(wrong) => {
            let field = format!("metadata.annotations[{}]", keys::SERVE_PATHS);
            let message = format!("`{wrong}` is no path; begin it with a slash: \"/{wrong}\"");
            Err(Complaint::error(field, message))
        }
    }
}

/// The name of the key that the engine of `model` wants of its clients; `None` where it says none, or none
/// that may be.
pub fn key_of_engine(model: &Model) -> Option<String> {
    api_key_secret(Subject::from(model).config).ok().flatten()
}

/// Only a name: whoever writes a Model must not have any other file of the gateway's sent to an engine.
fn api_key_secret(config: Config<'_>) -> Result<Option<String>, Complaint> {
    let Some(name) = config.text("apiKeySecret")? else { return Ok(None) };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
        return Err(Complaint::error(
            "spec.config.apiKeySecret",
            format!(
                "`{name}` is no name of a file; write one of the folder --engine-secrets, without its path"
            ),
        ));
    }
    Ok(Some(name.to_owned()))
}

/// `most`, but no more than `window`.
fn within(most: Option<u32>, window: Option<u32>) -> Option<u32> {
    most.map(|most| window.map_or(most, |window| most.min(window)))
}

fn routing(model: &Model) -> Result<Option<Strategy>, Complaint> {
    let annotations = model.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(keys::ROUTING)).map(|text| text.trim());
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let field = format!("metadata.annotations[{}]", keys::ROUTING);
        let known = Strategy::VARIANTS.join(", ");
        Complaint::error(field, format!("`{text}` is not known; write one of {known}"))
    })
}

fn group_of(id: &ModelId, gpu: Option<&Gpu>) -> GroupId {
    let gpu = gpu.filter(|gpu| gpu.vendor != Some(Vendor::Cpu));
    let shared = gpu.and_then(|gpu| gpu.shared.as_deref()).map(str::trim).unwrap_or_default();
    if shared.is_empty() {
        return GroupId::Alone(id.clone());
    }
    GroupId::Shared { namespace: Arc::clone(&id.namespace), name: shared.into() }
}

/// The spec's estimate is per GPU; what is packed is the model.
fn vram_estimate(gpu: &Gpu) -> Option<u64> {
    let count = gpu.count.and_then(|count| u64::try_from(count).ok()).unwrap_or(1).max(1);
    let estimate = u64::try_from(gpu.vram_estimate_mb?).ok()?;
    Some(estimate.saturating_mul(count))
}

/// The fewest and the most engines.
fn replicas(serverless: &Serverless) -> (u32, u32) {
    let least = u32::from(serverless.enabled == Some(false));
    let count = |replicas: Option<i32>| replicas.and_then(|count| u32::try_from(count).ok());
    let min = count(serverless.min_replicas).unwrap_or(0).max(least);
    let max = count(serverless.max_replicas).unwrap_or(1).max(min).max(1);
    (min, max)
}

/// The names without blanks around them, each once, without `own`.
fn distinct<'a>(names: impl IntoIterator<Item = &'a String>, own: &str) -> Vec<String> {
    let mut distinct = Vec::new();
    for name in names {
        let name = name.trim();
        if !name.is_empty() && name != own && !distinct.iter().any(|known| known == name) {
            distinct.push(name.to_owned());
        }
    }
    distinct
}

#[cfg(test)]
mod tests;
