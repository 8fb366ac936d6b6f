//! Everything that the objects of one Model have in common, settled once.

use flexinfer_crds::Model;
use flexinfer_crds::conditions::ConditionReason;

use super::weights::MODELS;
use super::{Refusal, Settings, Weights};
use crate::backends::{self, Backend, Launch, Platform};
use crate::effective::Effective;
use crate::planning::placing::Placement;

/// What the objects of one Model are drawn from.
#[derive(Debug)]
pub struct Blueprint<'a> {
    pub(super) model: &'a Model,
    pub(super) effective: &'a Effective,
    pub(super) placement: &'a Placement,
    pub(super) settings: &'a Settings,
    pub(super) backend: Backend,
    pub(super) weights: Weights,
    adapters: Adapters,
    /// Whether the claim that holds the weights can be used from several nodes at once.
    pub(super) on_many_nodes: bool,
}

/// The LoRA adapters that a model's engines shall have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adapters {
    /// How many.
    pub count: u32,
    /// The largest rank that any of them asks for.
    pub rank: Option<u32>,
}

/// The folder for files that an engine reads at its start; a ConfigMap is mounted there.
pub(super) const FILES: &str = "/etc/flexinfer";

impl<'a> Blueprint<'a> {
    /// Looks the Model over; what cannot work is refused here or where it is drawn.
    pub fn of(
        model: &'a Model,
        effective: &'a Effective,
        placement: &'a Placement,
        settings: &'a Settings,
    ) -> Result<Self, Refusal> {
        let backend = Backend::of(model).map_err(|error| {
            Refusal::new(ConditionReason::BackendUnsupported, error.to_string())
        })?;
        let weights = Weights::of(model, effective, backend, settings)?;
        let adapters = Adapters::default();
        let on_many_nodes = false;
        Ok(Self {
            model,
            effective,
            placement,
            settings,
            backend,
            weights,
            adapters,
            on_many_nodes,
        })
    }

    /// The same with room for these adapters in the engine.
    #[must_use]
    pub fn with_adapters(self, adapters: Adapters) -> Self {
        Self { adapters, ..self }
    }

    /// Where the weights are and how they get there.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// What it is drawn with.
    pub(crate) fn settings(&self) -> &Settings {
        self.settings
    }

    /// What is started in the engine's container.
    pub(super) fn launch(&self) -> Result<Launch, Refusal> {
        let place = backends::Placement {
            platform: Platform::Pod,
            host: "0.0.0.0".to_owned(),
            port: self.backend.port(),
            model: self.weights.place.clone(),
            gpu: self.placement.gpu(),
            adapters: self.adapters.count,
            adapter_rank: self.adapters.rank,
            // The image's own entry point.
            simulator_program: Some(String::new()),
            data_dir: FILES.to_owned(),
            store: self.weights.store.clone(),
        };
        Ok(self.backend.launch(self.model, &place)?)
    }

    /// An annotation of the Model, trimmed; `None` where it is empty.
    pub(crate) fn annotation(&self, key: &str) -> Option<&'a str> {
        let annotations = self.model.metadata.annotations.as_ref()?;
        annotations.get(key).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    /// A folder of a node that belongs to this model alone.
    pub(super) fn own_folder(&self, top: &str) -> String {
        let id = &self.effective.id;
        format!("{}/{}/{}", top.trim_end_matches('/'), id.namespace, id.name)
    }

    /// The folder that the engine reads as it lies below `mount`, where the weights are mounted there.
    pub(super) fn folder_below(&self, mount: &str) -> Option<String> {
        let folder = self.weights.folder.as_deref()?;
        let below =
            folder.strip_prefix(MODELS).or_else(|| folder.strip_prefix(&self.weights.mount))?;
        Some(format!("{mount}{below}"))
    }
}
