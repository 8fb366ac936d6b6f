//! Files of Models and their adapters: one reader for both platforms, so that a file means the same in a folder and on
//! a cluster. It tells everything that is wrong at once, each with its line and what to do, and a
//! faulty document never hides the others. Called by local mode on every change of its folder.

pub(crate) mod complaint;
mod envelope;
mod metadata;
pub(crate) mod nearest;
pub(crate) mod node;
mod object;
pub(crate) mod reader;
pub(crate) mod scalar;
mod schema;
mod value;

#[cfg(test)]
mod tests;

use flexinfer_crds::{LoRAAdapter, Model, ObjectMeta};

use crate::effective::Effective;

pub use complaint::Complaint;

use complaint::{Notes, Place};
use envelope::{Document, Kind};

/// The largest file that is read, in bytes; a larger one need not be read to its end.
pub const LARGEST_FILE: usize = 1024 * 1024;

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The Models without a fault, in the order of the file.
    pub models: Vec<ParsedModel>,
    /// The LoRA adapters without a fault, in the order of the file.
    pub adapters: Vec<ParsedAdapter>,
    /// What is worth knowing: skipped kinds, older spellings, options that do nothing.
    pub warnings: Vec<Complaint>,
    /// What keeps a document from being used.
    pub errors: Vec<Complaint>,
}

/// A Model and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedModel {
    /// The Model, as the file says it: no defaults are applied.
    pub model: Model,
    /// What it means, as its first generation, 0.
    pub effective: Effective,
    /// The line where its document begins, counted from 1.
    pub line: usize,
}

/// An adapter and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedAdapter {
    /// The adapter, as the file says it.
    pub adapter: LoRAAdapter,
    /// The line where its document begins, counted from 1.
    pub line: usize,
}

/// What the bytes of `file` hold; its name is only for complaints.
pub fn parse(file: &str, bytes: &[u8]) -> Parsed {
    let mut notes = Notes::of(file);
    let mut parsed = Parsed::default();
    if let Some(text) = text(bytes, &mut notes) {
        for node in reader::documents(text, &mut notes) {
            for document in envelope::open(&node, &mut notes) {
                match document.kind {
                    Kind::Model => read_model(&document, &mut parsed, &mut notes),
                    Kind::LoRAAdapter => read_adapter(&document, &mut parsed, &mut notes),
                }
            }
        }
    }
    let Notes { mut errors, mut warnings, .. } = notes;
    errors.sort_by_key(|complaint| (complaint.line, complaint.column));
    warnings.sort_by_key(|complaint| (complaint.line, complaint.column));
    Parsed { warnings, errors, ..parsed }
}

/// Adds the Model of a document, unless it has a fault or its name is taken by an earlier one.
fn read_model(document: &Document<'_>, parsed: &mut Parsed, notes: &mut Notes) {
    let Some((model, effective)) = object::model(document, notes) else { return };
    if let Some(twin) = parsed.models.iter().find(|known| known.effective.id == effective.id) {
        return taken(document, twin.line, notes);
    }
    parsed.models.push(ParsedModel { model, effective, line: document.node.place.line });
}

/// The same for an adapter.
fn read_adapter(document: &Document<'_>, parsed: &mut Parsed, notes: &mut Notes) {
    let Some(adapter) = object::adapter(document, notes) else { return };
    let twin =
        parsed.adapters.iter().find(|known| same(&known.adapter.metadata, &adapter.metadata));
    if let Some(twin) = twin {
        return taken(document, twin.line, notes);
    }
    parsed.adapters.push(ParsedAdapter { adapter, line: document.node.place.line });
}

fn same(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    (&a.namespace, &a.name) == (&b.namespace, &b.name)
}

fn taken(document: &Document<'_>, line: usize, notes: &mut Notes) {
    let kind = document.kind.name();
    let message = format!("metadata.name: the {kind} on line {line} has this name already");
    notes.error(document.node.place_of(["metadata", "name"]), message);
}

/// The file as text, without a byte-order mark.
pub(crate) fn text<'b>(bytes: &'b [u8], notes: &mut Notes) -> Option<&'b str> {
    if bytes.len() > LARGEST_FILE {
        let message = format!("the file has more than {LARGEST_FILE} bytes, so split it");
        notes.error(Place::START, message);
        return None;
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        notes.error(Place::START, "the file is UTF-16; save it as UTF-8");
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.strip_prefix('\u{FEFF}').unwrap_or(text)),
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = 1 + memchr::memchr_iter(b'\n', before).count();
            let place = Place { line, column: 1 };
            notes.error(place, "the line is not UTF-8; save the file as UTF-8");
            None
        }
    }
}
