//! What is wrong with a Model from its backend's point of view, told so that its author can fix it.

use std::fmt;

/// One thing to fix in a Model, or to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The field it is about, as a path from the top of the Model: `spec.config.contextSize`.
    pub field: String,
    /// What is wrong and what to write instead.
    pub message: String,
    /// A warning does not keep the model from being served; anything else does.
    pub warning: bool,
}

impl Complaint {
    /// Something that keeps the model from being served.
    pub fn error(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), warning: false }
    }

    /// Something the author should know; the model is served nevertheless.
    pub fn warning(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), warning: true }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for Complaint {}
