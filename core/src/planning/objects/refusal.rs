//! Why no object can be made of a Model: a plan that applies nothing, told in status.

use flexinfer_crds::conditions::{ConditionReason, ConditionType};

use crate::backends::{Complaint, LaunchError};
use crate::sources::BadSource;

/// A Model that cannot run as it is, or not here. Somebody has to change the Model, the controller's
/// settings or the cluster; until then trying again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The reason of the condition that says so.
    pub reason: ConditionReason,
    /// What is wrong and what to do, for people.
    pub message: String,
}

impl Refusal {
    /// A refusal for `reason`, explained by `message`.
    pub fn new(reason: ConditionReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// The spec's `field` has to be changed.
    pub(super) fn field(field: &str, message: &str) -> Self {
        Self::new(ConditionReason::ConfigInvalid, format!("{field}: {message}"))
    }

    /// The condition that turns false with it.
    pub const fn condition(&self) -> ConditionType {
        match self.reason {
            ConditionReason::NoMatchingNodes
            | ConditionReason::AmbiguousGpuVendor
            | ConditionReason::VramInsufficient => ConditionType::Schedulable,
            _ => ConditionType::ConfigValid,
        }
    }
}

impl From<Complaint> for Refusal {
    fn from(complaint: Complaint) -> Self {
        Self::new(ConditionReason::ConfigInvalid, complaint.to_string())
    }
}

impl From<LaunchError> for Refusal {
    fn from(error: LaunchError) -> Self {
        Self::new(ConditionReason::ConfigInvalid, error.to_string())
    }
}

impl From<BadSource> for Refusal {
    fn from(error: BadSource) -> Self {
        Self::field("spec.source", &error.to_string())
    }
}
