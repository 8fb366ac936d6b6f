//! Whether an object can work. Said here is what local mode says of a file and what the controller would say in the
//! status afterwards, so that its author learns it while they look.

use flexinfer_crds::{LoRAAdapter, Model};
use serde_json::Value;

use super::review::{BadReview, Operation, Question};
use crate::backends::{Backend, Complaint};
use crate::judging::{Judged, judge, judge_adapter};
use crate::planning::objects::{Refusal, Settings, Weights};

/// The answer to the question in `body`. An edit is refused for what it breaks and warned of what was broken before,
/// or nothing could be changed, and no finalizer removed, once the rules have become stricter.
pub fn validate(body: &[u8], settings: &Settings) -> Result<Value, BadReview> {
    let question = Question::read(body)?;
    let asked = matches!(question.operation, Operation::Create | Operation::Update);
    if !asked || question.is_leaving() {
        return Ok(question.allowed(&[]));
    }
    let kind = question.kind.kind.as_str();
    let before = match question.operation {
        Operation::Update => complaints(kind, &question.old_object, settings),
        _ => Vec::new(),
    };
    let found = complaints(kind, &question.object, settings);
    let (warnings, errors): (Vec<Complaint>, Vec<Complaint>) =
        found.into_iter().partition(|complaint| complaint.warning || before.contains(complaint));
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    if errors.is_empty() {
        return Ok(question.allowed(&warnings));
    }
    Ok(question.refused(&errors, &warnings))
}

fn complaints(kind: &str, object: &Value, settings: &Settings) -> Vec<Complaint> {
    match kind {
        "Model" => match serde_json::from_value::<Model>(object.clone()) {
            Ok(model) => of_model(model, settings),
            Err(error) => vec![Complaint::error("spec", error.to_string())],
        },
        "LoRAAdapter" => match serde_json::from_value::<LoRAAdapter>(object.clone()) {
            Ok(adapter) => judge_adapter(&adapter),
            Err(error) => vec![Complaint::error("spec", error.to_string())],
        },
        _ => Vec::new(),
    }
}

fn of_model(mut model: Model, settings: &Settings) -> Vec<Complaint> {
    // The server makes a name later where it is asked to.
    let metadata = &mut model.metadata;
    if metadata.name.as_ref().is_none_or(String::is_empty) {
        metadata.name.clone_from(&metadata.generate_name);
    }
    let Judged { effective, broken, mut complaints } = judge(&model);
    complaints.extend(broken.iter().map(|broken| {
        Complaint::error(format!("spec.{}", broken.field.join(".")), broken.message)
    }));
    let fatal = complaints.iter().any(|complaint| !complaint.warning);
    if let (false, Some(effective), Ok(backend)) = (fatal, &effective, Backend::of(&model)) {
        let refusal = Weights::of(&model, effective, backend, settings).err();
        complaints.extend(refusal.map(refused));
    }
    complaints
}

/// A refusal says its field first.
fn refused(refusal: Refusal) -> Complaint {
    match refusal.message.split_once(": ") {
        Some((field, message)) if field.starts_with("spec.") => Complaint::error(field, message),
        _ => Complaint::error("spec", refusal.message),
    }
}
