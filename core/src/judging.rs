//! What is wrong with a Model or an adapter as a whole, all of it at once: asked by the reader of files and at a
//! cluster's door. Whether each field by itself fits the schema is known by then.

use flexinfer_crds::lora_adapter::AdapterSourceType;
use flexinfer_crds::model::{BrokenRule, broken_rules};
use flexinfer_crds::{LoRAAdapter, Model};

use crate::backends::{Backend, Complaint};
use crate::effective::{Defaults, Effective};
use crate::sources::huggingface::Repository;

/// What is to be said about a Model.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What it means, as its first generation; `None` where it means nothing.
    pub effective: Option<Effective>,
    /// The rules over several fields that it breaks.
    pub broken: Vec<BrokenRule>,
    /// Everything else that is wrong, and what its author should know.
    pub complaints: Vec<Complaint>,
}

/// Judges `model` as a whole.
pub fn judge(model: &Model) -> Judged {
    let backend = Backend::of(model).ok();
    // Whether a source is needed depends on the backend, which has to be right first.
    let certain = |broken: &BrokenRule| backend.is_some() || broken.field != ["source"];
    let broken: Vec<BrokenRule> = broken_rules(&model.spec).into_iter().filter(certain).collect();
    let (effective, mut complaints) = match Effective::of(model, 0, &Defaults::default()) {
        Ok(effective) => (Some(effective), Vec::new()),
        Err(complaints) => (None, complaints),
    };
    if let Some(backend) = backend {
        complaints.extend(backend.check(model));
    }
    // A backend says in its own words what a rule has said of the same field.
    let told = |complaint: &Complaint| {
        broken.iter().any(|broken| complaint.field == format!("spec.{}", broken.field.join(".")))
    };
    complaints.retain(|complaint| !told(complaint));
    Judged { effective, broken, complaints }
}

/// Everything that is wrong with `adapter`.
pub fn judge_adapter(adapter: &LoRAAdapter) -> Vec<Complaint> {
    let source = &adapter.spec.source;
    if source.r#type != AdapterSourceType::HuggingFace {
        return Vec::new();
    }
    let repository = source.uri.strip_prefix("HF://").unwrap_or(&source.uri);
    let error = Repository::parse(repository).err();
    error.map(|error| Complaint::error("spec.source.uri", error.to_string())).into_iter().collect()
}
