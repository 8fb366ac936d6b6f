//! Weights that a Job makes smaller after they were fetched: what is made, where it lies, and what is
//! meant where the Model says nothing.

use std::collections::BTreeMap;

use flexinfer_crds::model::{Quantization, QuantizationFormat as Format};

use super::{ClaimUse, Filling, Held, MODELS, Weights};
use crate::backends::{Config, ModelPlace};
use crate::planning::objects::{Refusal, names};

/// Weights that are made smaller, beside those that were fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// What the Model asks for.
    pub wanted: Quantization,
    /// The file or folder that is read, absolute.
    pub from: String,
    /// The folder that is written, absolute. Other weights, or the same made otherwise, go to another.
    pub to: String,
    /// The file within it that the engine is given; `None` where it is given the folder.
    pub file: Option<String>,
}

/// `quantize.ggufType` of a Model that names none.
const GGUF_TYPE: &str = "Q4_K_M";

/// The one file of a GGUF.
const GGUF_FILE: &str = "model.gguf";

impl Quantized {
    /// The kind of GGUF; `None` of the other formats.
    pub fn gguf_type(&self) -> Option<&str> {
        let own = self.wanted.gguf_type.as_deref().map(str::trim).filter(|kind| !kind.is_empty());
        (self.wanted.format == Format::Gguf).then(|| own.unwrap_or(GGUF_TYPE))
    }

    /// Bits per weight; `None` where the kind of GGUF says it.
    pub fn bits(&self) -> Option<i32> {
        let default = match self.wanted.format {
            Format::Gguf => return None,
            Format::Awq | Format::Gptq | Format::Exl2 => 4,
            Format::Fp8 => 8,
        };
        Some(self.wanted.bits.unwrap_or(default))
    }

    /// Weights that share a scale; `None` where the format has no such thing.
    pub fn group_size(&self) -> Option<i32> {
        let grouped = matches!(self.wanted.format, Format::Awq | Format::Gptq);
        grouped.then(|| self.wanted.group_size.unwrap_or(128))
    }

    /// Whether the Job uses a GPU.
    pub fn uses_gpu(&self) -> bool {
        self.wanted.use_gpu.unwrap_or(self.wanted.format != Format::Gguf)
    }

    /// The most memory that the Job may take, in GiB.
    pub fn memory_gib(&self) -> i32 {
        let default = if self.wanted.format == Format::Gguf { 32 } else { 48 };
        self.wanted.max_memory_gb.unwrap_or(default)
    }

    /// How long the Job may take, in seconds: 2 hours where nothing has to be measured, else 6.
    pub fn limit(&self) -> i64 {
        let hours = if matches!(self.wanted.format, Format::Gguf | Format::Fp8) { 2 } else { 6 };
        self.wanted.timeout_seconds.unwrap_or(hours * 3600)
    }

    /// What comes of it, in short: `gguf-q4_k_m`, `awq-w4-g128`.
    fn label(&self) -> String {
        let mut label = self.wanted.format.to_string().to_ascii_lowercase();
        if let Some(kind) = self.gguf_type() {
            label.push('-');
            label.push_str(&names::label_value(kind).to_ascii_lowercase());
        }
        for (letter, number) in [("w", self.bits()), ("g", self.group_size())] {
            label.extend(number.map(|number| format!("-{letter}{number}")));
        }
        label
    }

    /// Everything that the outcome depends on, as one text.
    fn recipe(&self, filling: &Filling) -> String {
        let wanted = Quantization {
            // Where and how fast it is made changes nothing about what is made.
            use_gpu: None,
            max_memory_gb: None,
            gpu_memory_fraction: None,
            timeout_seconds: None,
            node_selector: BTreeMap::new(),
            ..self.wanted.clone()
        };
        format!("{filling:?} {} {wanted:?}", self.label())
    }
}

impl Weights {
    /// These weights, made smaller as `wanted` says: the engine is given the outcome.
    pub(super) fn quantized(
        mut self,
        wanted: &Quantization,
        model: &str,
        config: Config<'_>,
    ) -> Result<Self, Refusal> {
        let own =
            matches!(self.held, Held::Claim { made_by: ClaimUse::Made | ClaimUse::Named, .. });
        let filled = matches!(self.filling, Filling::ByJob(_) | Filling::Checked(_));
        let (true, true, ModelPlace::Path(from)) = (own, filled, &self.place) else {
            let message = "needs weights that are fetched to a claim of the model's own; write \
                           cache: {strategy: SharedPVC} with a source HF:// or pvc://, or leave \
                           quantize out";
            return Err(Refusal::field("spec.quantize", message));
        };
        if config.text("mmproj")?.is_some_and(|path| !path.starts_with('/')) {
            let message = "is looked for beside the quantized weights and is not there; have it fetched \
                           by config.hfAllowPatterns and write its whole path below /models";
            return Err(Refusal::field("spec.config.mmproj", message));
        }
        let mut quantized =
            Quantized { wanted: wanted.clone(), from: from.clone(), to: String::new(), file: None };
        let recipe = names::hash(quantized.recipe(&self.filling).as_bytes(), 10);
        quantized.to = format!("{MODELS}/quantized/{model}/{}-{recipe}", quantized.label());
        quantized.file =
            (wanted.format == Format::Gguf).then(|| format!("{}/{GGUF_FILE}", quantized.to));
        let place = quantized.file.as_ref().unwrap_or(&quantized.to).clone();
        self.place = ModelPlace::Path(place);
        self.folder = Some(quantized.to.clone());
        self.only = Vec::new();
        self.quantized = Some(quantized);
        Ok(self)
    }
}
