//! What a backend reads of a Model, taken out of it once.

use flexinfer_crds::Model;
use flexinfer_crds::model::Vendor;

use super::{Complaint, Config};

/// The parts of a Model that decide how its engine is started.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// `metadata.name`.
    pub name: &'a str,
    /// `spec.backend`.
    pub backend: &'a str,
    /// `spec.source`; empty where the Model has none.
    pub source: &'a str,
    /// `spec.config`.
    pub config: Config<'a>,
    /// `spec.kvCache.maxBlockSize`: tokens in a block of the KV cache.
    pub block_size: Option<i64>,
    /// Whether `spec.kvCache.swapSpace` is set.
    pub swap_space: bool,
    /// Whether the Model asks for GPUs at all.
    pub wants_gpu: bool,
}

impl<'a> From<&'a Model> for Subject<'a> {
    fn from(model: &'a Model) -> Self {
        let spec = &model.spec;
        let cache = spec.kv_cache.as_ref();
        Self {
            name: model.metadata.name.as_deref().unwrap_or_default(),
            backend: &spec.backend,
            source: spec.source.as_deref().unwrap_or_default(),
            config: Config::of(Some(&spec.config)),
            block_size: cache.and_then(|cache| cache.max_block_size).map(i64::from),
            swap_space: cache.is_some_and(|cache| cache.swap_space.is_some()),
            // No block means the processor, as does saying so.
            wants_gpu: spec.gpu.as_ref().is_some_and(|gpu| gpu.vendor != Some(Vendor::Cpu)),
        }
    }
}

impl<'a> Subject<'a> {
    /// The scheme of the source in lower case, without `://`; empty where there is no source.
    pub(super) fn scheme(&self) -> String {
        self.source.split_once("://").map_or_else(String::new, |(scheme, _)| scheme.to_lowercase())
    }

    /// The source without its scheme; a PVC's path as it is mounted.
    pub(super) fn bare_source(&self) -> &'a str {
        self.source.split_once("://").map_or(self.source, |(_, rest)| rest)
    }

    /// The file within the source that the options name: `config.ggufFile` or `config.modelFile`.
    pub(super) fn file(&self) -> Option<&'a str> {
        self.file_option().map(|(_, file)| file)
    }

    /// The same, and which of the two options it is.
    pub(super) fn file_option(&self) -> Option<(&'static str, &'a str)> {
        ["ggufFile", "modelFile"]
            .into_iter()
            .find_map(|name| Some((name, self.config.text(name).ok().flatten()?)))
    }

    /// The name that is asked for at the engine: `config.servedModelName`, else the source without
    /// its scheme, else the Model's own name.
    pub(super) fn served_name(&self) -> String {
        if let Ok(Some(name)) = self.config.text("servedModelName") {
            return name.to_owned();
        }
        match (self.scheme().as_str(), self.bare_source()) {
            (_, "") => self.name.to_owned(),
            // The claim's name is not part of the path below its mount.
            ("pvc", rest) => format!("/{}", rest.split_once('/').map_or("", |(_, path)| path)),
            (_, rest) => rest.to_owned(),
        }
    }

    /// Refuses every source whose scheme is not among `schemes`, with `hint` as the way out.
    pub(super) fn refuse_sources_except(&self, schemes: &[&str], hint: &str) -> Option<Complaint> {
        if self.source.is_empty() {
            let message = format!("missing; {hint}");
            return Some(Complaint::error("spec.source", message));
        }
        let scheme = match self.scheme().as_str() {
            "huggingface" => "hf".to_owned(),
            scheme => scheme.to_owned(),
        };
        if schemes.contains(&scheme.as_str()) {
            return None;
        }
        let message = format!("{} cannot load `{}`; {hint}", self.backend, self.source);
        Some(Complaint::error("spec.source", message))
    }
}
