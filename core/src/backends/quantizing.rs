//! What is wrong with a Model's wish for smaller weights.

use super::{Backend, Complaint, Subject};

/// A format that the engine cannot load.
pub(super) fn complaint(backend: Backend, subject: &Subject<'_>) -> Option<Complaint> {
    let format = subject.quantized?;
    let known = backend.quantizations();
    if known.contains(&format) {
        return None;
    }
    let name = backend.name();
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    let (field, message) = match known.as_slice() {
        [] => {
            ("spec.quantize", format!("{name} loads no weights that are made for it; leave it out"))
        }
        known => {
            let message = format!("{name} cannot load {format}; write {}", known.join(", "));
            ("spec.quantize.format", message)
        }
    };
    Some(Complaint::error(field, message))
}

/// Local mode has no quantizers.
pub(super) fn only_on_clusters() -> Complaint {
    let message = "weights are quantized on clusters only; name weights that are quantized already, and \
                   leave it out";
    Complaint::error("spec.quantize", message)
}
