//! Which backend a Model means: names, aliases, and what is said about a name that nobody knows.

use strum::IntoEnumIterator;

use super::keys::nearest;
use super::{Backend, Subject};

/// `spec.backend` names no backend, and `spec.config.command` names no program either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "spec.backend: unknown backend `{name}`{} Any other engine works too: name its program in \
     spec.config.command",
    hint(.nearest.as_deref())
)]
pub struct UnknownBackend {
    /// What the Model says.
    pub name: String,
    /// The backend most like it, if any is.
    pub nearest: Option<String>,
}

fn hint(nearest: Option<&str>) -> String {
    if let Some(nearest) = nearest {
        return format!(", did you mean `{nearest}`?");
    }
    let names: Vec<_> = Backend::iter().map(Backend::name).collect();
    format!("; known are {}.", names.join(", "))
}

impl Backend {
    /// The backend called `name`, by its own name or one of its aliases, whatever the case.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Self::iter().find(|backend| backend.name() == name || backend.aliases().contains(&&*name))
    }

    /// The backend of a Model. A name that is unknown is accepted with `config.command`.
    pub fn of<'a>(model: impl Into<Subject<'a>>) -> Result<Self, UnknownBackend> {
        let subject = model.into();
        if let Some(backend) = Self::named(subject.backend) {
            return Ok(backend);
        }
        if subject.config.has("command") {
            return Ok(Self::Command);
        }
        let names = Self::iter().flat_map(|backend| {
            std::iter::once(backend.name()).chain(backend.aliases().iter().copied())
        });
        let nearest = nearest(subject.backend, names).map(str::to_owned);
        Err(UnknownBackend { name: subject.backend.to_owned(), nearest })
    }

    /// The name as users write it in `spec.backend`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Other spellings that mean the same.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::LlamaCpp => &["llama.cpp", "llama-cpp", "llama_cpp", "llama-server"],
            Self::MlcLlm => &["mlc", "mlc_llm"],
            Self::ComfyUi => &["comfy", "comfy-ui", "comfy_ui"],
            Self::VllmOmni => &["vllm-diffusion", "vllm_omni"],
            Self::Ollama
            | Self::Vllm
            | Self::Diffusers
            | Self::Simulator
            | Self::External
            | Self::Command => &[],
        }
    }
}
