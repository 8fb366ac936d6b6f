//! Which image an engine, a loader or a job runs: the Model's own, else a variable of the controller's
//! environment, else the engine's public image. There is no image behind which nobody stands: where no
//! public one exists, somebody has to name one.

use std::collections::BTreeMap;

use flexinfer_crds::conditions::ConditionReason;
use flexinfer_crds::model::{ModelSpec, QuantizationFormat};

use super::Refusal;
use crate::backends::{Backend, Gpu, Vendor};

/// The variables of the controller's environment that name images: `DEFAULT_VLLM_IMAGE_AMD`,
/// `FLEXINFER_NODE_IMAGE` and the like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    variables: BTreeMap<String, String>,
}

/// This project's own programs.
const NODE: &str = "FLEXINFER_NODE_IMAGE";
const SIMULATOR: &str = "FLEXINFER_SIMULATOR_IMAGE";
const FLASH_LOADER: &str = "DEFAULT_FLASH_LOADER_IMAGE";
const BENCHMARKER: &str = "BENCHMARK_IMAGE";

impl Images {
    /// Those among `variables` that name images; empty ones count as unset.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let image = |name: &str| {
            let ours = name.starts_with("DEFAULT_") || name.starts_with("FLEXINFER_");
            name == BENCHMARKER || (ours && (name.ends_with("_IMAGE") || name.contains("_IMAGE_")))
        };
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name, value.trim().to_owned()))
            .filter(|(name, value)| image(name) && !value.is_empty())
            .collect();
        Self { variables }
    }

    /// Every variable that is set, with its image.
    pub const fn set(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The engine's image for `spec` on these GPUs, pinned by `imageDigest` where that is set.
    pub fn engine(&self, spec: &ModelSpec, backend: Backend, gpu: &Gpu) -> Result<String, Refusal> {
        let own = spec.image.as_deref().map(str::trim).filter(|image| !image.is_empty());
        let default = || self.default_of(backend, gpu);
        let image = own.map(str::to_owned).or_else(default);
        let image = image.ok_or_else(|| not_configured(backend, gpu))?;
        Ok(match &spec.image_digest {
            Some(digest) => pinned(&image, digest),
            None => image,
        })
    }

    /// The image where a Model names none.
    pub fn default_of(&self, backend: Backend, gpu: &Gpu) -> Option<String> {
        let set = variables(backend, gpu).into_iter().find_map(|name| self.get(&name));
        set.or_else(|| public(backend, gpu).map(str::to_owned))
    }

    /// The image with `flexinfer-node` in it.
    pub fn node(&self) -> Result<String, Refusal> {
        self.get(NODE).ok_or_else(|| {
            let message = format!(
                "fetching weights needs the image of flexinfer-node; set {NODE} on the controller"
            );
            Refusal::new(ConditionReason::ImageNotConfigured, message)
        })
    }

    /// The image of the flash loader, where a Model names none.
    pub fn flash_loader(&self) -> Result<String, Refusal> {
        self.get(FLASH_LOADER).map_or_else(|| self.node(), Ok)
    }

    /// The image that measures models, if there is one.
    pub fn benchmarker(&self) -> Option<String> {
        self.get(BENCHMARKER).or_else(|| self.get(NODE))
    }

    /// The image that makes weights of `format` on these GPUs.
    pub fn quantizer(&self, format: QuantizationFormat, gpu: &Gpu) -> Result<String, Refusal> {
        let mut names = Vec::new();
        if gpu.vendor == Vendor::Amd {
            let architecture = gpu.architecture.as_deref().unwrap_or_default().to_uppercase();
            names.push(format!("FLEXINFER_QUANTIZER_{format}_ROCM_{architecture}_IMAGE"));
            names.push(format!("FLEXINFER_QUANTIZER_{format}_ROCM_IMAGE"));
        }
        names.push(format!("FLEXINFER_QUANTIZER_{format}_IMAGE"));
        names.push("FLEXINFER_RUNTIME_IMAGE".to_owned());
        names.iter().find_map(|name| self.get(name)).ok_or_else(|| {
            let message = format!(
                "spec.quantize: there is no public image that makes {format}; set \
                 FLEXINFER_QUANTIZER_{format}_IMAGE on the controller"
            );
            Refusal::new(ConditionReason::ImageNotConfigured, message)
        })
    }

    fn get(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

/// The variables that may name the image, the most special first. What is set for NVIDIA serves no other
/// maker's GPU; the processor has a variable of its own unless the same image serves both.
fn variables(backend: Backend, gpu: &Gpu) -> Vec<String> {
    let stem = match backend {
        Backend::Ollama => "DEFAULT_BACKEND_IMAGE",
        Backend::Vllm => "DEFAULT_VLLM_IMAGE",
        Backend::MlcLlm => "DEFAULT_MLC_LLM_IMAGE",
        Backend::LlamaCpp => "DEFAULT_LLAMA_CPP_IMAGE",
        Backend::ComfyUi => "DEFAULT_COMFYUI_IMAGE",
        Backend::Diffusers => "DEFAULT_DIFFUSERS_IMAGE",
        Backend::VllmOmni => "DEFAULT_VLLM_OMNI_IMAGE",
        Backend::Simulator => return vec![SIMULATOR.to_owned()],
        Backend::External | Backend::Command => return Vec::new(),
    };
    let mut names = Vec::new();
    if gpu.is_maxwell() {
        names.push(format!("{stem}_MAXWELL"));
    }
    if let Some(architecture) = &gpu.architecture {
        names.push(format!("{stem}_{}", architecture.to_uppercase()));
    }
    names.push(format!("{stem}_{}", gpu.vendor.to_string().to_uppercase()));
    if gpu.vendor == Vendor::Nvidia || (gpu.vendor == Vendor::Cpu && backend == Backend::Ollama) {
        names.push(stem.to_owned());
    }
    names
}

/// What the engine's own project publishes for such GPUs.
fn public(backend: Backend, gpu: &Gpu) -> Option<&'static str> {
    Some(match (backend, gpu.vendor) {
        (Backend::Ollama, Vendor::Amd) => "ollama/ollama:rocm",
        (Backend::Ollama, _) => "ollama/ollama:latest",
        (Backend::Vllm, Vendor::Nvidia) if !gpu.is_maxwell() => "vllm/vllm-openai:latest",
        (Backend::Vllm, Vendor::Amd) => "rocm/vllm:latest",
        (Backend::LlamaCpp, Vendor::Nvidia) => "ghcr.io/ggml-org/llama.cpp:server-cuda",
        (Backend::LlamaCpp, Vendor::Amd) => "ghcr.io/ggml-org/llama.cpp:server-rocm",
        (Backend::LlamaCpp, Vendor::Intel) => "ghcr.io/ggml-org/llama.cpp:server-intel",
        (Backend::LlamaCpp, Vendor::Cpu) => "ghcr.io/ggml-org/llama.cpp:server",
        (Backend::MlcLlm, Vendor::Nvidia) if !gpu.is_maxwell() => "ghcr.io/mlc-ai/mlc-llm:cuda",
        (Backend::MlcLlm, Vendor::Amd) => "ghcr.io/mlc-ai/mlc-llm:rocm",
        (Backend::ComfyUi, Vendor::Nvidia) => "comfyanonymous/comfyui:latest",
        _ => return None,
    })
}

fn not_configured(backend: Backend, gpu: &Gpu) -> Refusal {
    let where_to = match variables(backend, gpu).last() {
        Some(variable) => format!("spec.image, or {variable} on the controller"),
        None => "spec.image".to_owned(),
    };
    let on = match (gpu.vendor, &gpu.architecture) {
        (Vendor::Cpu, _) => "the processor".to_owned(),
        (vendor, None) => format!("{vendor} GPUs"),
        (vendor, Some(architecture)) => format!("{vendor} GPUs of {architecture}"),
    };
    let engine = if backend == Backend::Command { "this backend" } else { backend.name() };
    let message = format!("there is no public image of {engine} for {on}; set {where_to}");
    Refusal::new(ConditionReason::ImageNotConfigured, message)
}

/// `image` by `digest`, whatever tag or digest it had: the digest may stand without `sha256:`.
pub fn pinned(image: &str, digest: &str) -> String {
    let repository = image.split_once('@').map_or(image, |(repository, _)| repository);
    // A colon before the last slash belongs to the registry's port.
    let repository = match repository.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => repository,
    };
    let digest = digest.trim_start_matches("sha256:");
    format!("{repository}@sha256:{digest}")
}
