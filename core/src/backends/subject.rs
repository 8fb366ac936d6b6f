//! What a backend reads of a Model, taken out of it once.

use flexinfer_crds::Model;
use flexinfer_crds::model::{QuantizationFormat, Vendor};

use super::{Complaint, Config};
use crate::sources::{RelativePath, Scheme, Source};

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
    /// `spec.quantize.format`: what is made of the weights before the engine reads them.
    pub quantized: Option<QuantizationFormat>,
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
            quantized: spec.quantize.as_ref().map(|wanted| wanted.format),
            // No block means the processor, as does saying so.
            wants_gpu: spec.gpu.as_ref().is_some_and(|gpu| gpu.vendor != Some(Vendor::Cpu)),
        }
    }
}

impl<'a> Subject<'a> {
    /// The source, understood; `None` where the Model has none or one that cannot be understood.
    pub(super) fn parsed_source(&self) -> Option<Source> {
        self.source.parse().ok()
    }

    /// The source without its scheme, as it stands.
    pub(super) fn bare_source(&self) -> &'a str {
        self.source.split_once("://").map_or(self.source, |(_, rest)| rest)
    }

    /// The file within the source that is the model: `config.ggufFile`, `config.modelFile`, or the
    /// path behind a repository's name.
    pub(super) fn file(&self) -> Option<String> {
        if let Some((_, file)) = self.file_option() {
            return Some(file.to_owned());
        }
        let Some(Source::HuggingFace(repository)) = self.parsed_source() else { return None };
        repository.path.map(|path| path.as_str().to_owned())
    }

    /// The option that names the file, and what it names.
    pub(super) fn file_option(&self) -> Option<(&'static str, &'a str)> {
        ["ggufFile", "modelFile"]
            .into_iter()
            .find_map(|name| Some((name, self.config.text(name).ok().flatten()?)))
    }

    /// The name that is asked for at the engine: `config.servedModelName`, else the source without
    /// its scheme, revision and claim, else the Model's own name.
    pub(super) fn served_name(&self) -> String {
        if let Ok(Some(name)) = self.config.text("servedModelName") {
            return name.to_owned();
        }
        match self.parsed_source() {
            Some(Source::HuggingFace(repository)) => repository.id(),
            Some(Source::Oci(artifact)) => format!("{}/{}", artifact.registry, artifact.repository),
            Some(Source::Pvc(location)) => {
                format!("/{}", location.path.as_ref().map_or("", RelativePath::as_str))
            }
            Some(Source::Ollama(_) | Source::File(_)) => self.bare_source().to_owned(),
            None => self.name.to_owned(),
        }
    }

    /// What should be known of an artifact that is asked for by neither tag nor digest.
    pub(super) fn loose_source(&self) -> Option<Complaint> {
        let Some(Source::Oci(artifact)) = self.parsed_source() else { return None };
        artifact.is_loose().then(|| {
            let message = format!(
                "`{}` has neither a tag nor a digest, so it is `latest`, which may be another model tomorrow; write \
                 @sha256: and its digest to be sure what runs",
                self.source
            );
            Complaint::warning("spec.source", message)
        })
    }

    /// What is wrong with the source for a backend that loads `schemes` only, with `hint` as the
    /// way out.
    pub(super) fn source_complaint(&self, schemes: &[Scheme], hint: &str) -> Option<Complaint> {
        let complain = |message: String| Some(Complaint::error("spec.source", message));
        if self.source.is_empty() {
            return complain(format!("missing; {hint}"));
        }
        match self.source.parse::<Source>() {
            Err(error) => complain(error.to_string()),
            Ok(source) if schemes.contains(&source.scheme()) => None,
            Ok(_) => complain(format!("{} cannot load `{}`; {hint}", self.backend, self.source)),
        }
    }
}

/// The schemes whose weights are files on the engine's file system.
pub(super) const FILES: &[Scheme] = &[Scheme::HuggingFace, Scheme::File, Scheme::Pvc, Scheme::Oci];

/// For engines of which nothing else is known than that they are given files.
pub(super) const EVERY_FORMAT: &[QuantizationFormat] = &[
    QuantizationFormat::Gguf,
    QuantizationFormat::Awq,
    QuantizationFormat::Gptq,
    QuantizationFormat::Exl2,
    QuantizationFormat::Fp8,
];
