//! What a node shall carry: labels that placement selects by, annotations that it ranks by, and the one
//! patch that gets there.

mod annotations;
mod labels;
mod patch;
mod prefix;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use annotations::{annotations, measured_at, no_annotations};
pub use labels::{enabled, labels, no_labels};
pub use patch::patch;
pub use prefix::{BadPrefix, LabelPrefix};

/// Texts by key; `None` where the key shall not be there. Keys that are not named are left alone.
pub type Texts = BTreeMap<String, Option<String>>;

/// What a node shall carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Labels.
    pub labels: Texts,
    /// Annotations.
    pub annotations: Texts,
    /// Whether the node shall be tainted as about to be taken away; `None` leaves its taints alone.
    pub tainted: Option<bool>,
}

impl Marks {
    /// Adds `other`, which wins where both name a key.
    pub fn add(&mut self, other: Self) {
        self.labels.extend(other.labels);
        self.annotations.extend(other.annotations);
        self.tainted = other.tainted.or(self.tainted);
    }
}

/// What a node carries, of what matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its taints, each as the API server has it.
    pub taints: Vec<serde_json::Value>,
    /// The version that all this is of.
    pub resource_version: Option<String>,
    /// What pods may ask of it, by resource.
    pub allocatable: BTreeMap<String, String>,
    /// The boot of its machine.
    pub boot: Option<String>,
    /// What a cloud's controller calls its machine, such as `aws:///eu-west-1a/i-0123`.
    pub provider: Option<String>,
}
