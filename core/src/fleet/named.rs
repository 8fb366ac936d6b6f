//! What a name leads to.

use std::sync::Arc;

use super::{Adapter, Served};
use crate::rejection::Rejection;

/// What goes by a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    /// One model.
    Model(Arc<Served>),
    /// A model with a LoRA adapter of its own name.
    Adapter {
        /// The adapter.
        adapter: Arc<Adapter>,
        /// The model it is added to.
        base: Arc<Served>,
    },
    /// Any model that offers a service label.
    Label {
        /// The label, without its namespace.
        label: Arc<str>,
        /// Those that offer it, sorted by identity: at least one.
        models: Arc<[Arc<Served>]>,
    },
}

impl Named {
    /// The models of which any may answer: one, unless the name is a label's.
    pub fn candidates(&self) -> &[Arc<Served>] {
        match self {
            Self::Model(model) | Self::Adapter { base: model, .. } => std::slice::from_ref(model),
            Self::Label { models, .. } => models,
        }
    }

    /// The only candidate; a label of several is no single model.
    pub fn single(&self) -> Option<&Arc<Served>> {
        match self.candidates() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The label, if the name is one.
    pub fn label(&self) -> Option<&str> {
        match self {
            Self::Label { label, .. } => Some(label),
            Self::Model(_) | Self::Adapter { .. } => None,
        }
    }

    /// The adapter, if the name is one's.
    pub fn adapter(&self) -> Option<&Arc<Adapter>> {
        match self {
            Self::Adapter { adapter, .. } => Some(adapter),
            Self::Model(_) | Self::Label { .. } => None,
        }
    }

    /// The same with only those candidates that are `seen`; `None` where none is.
    pub fn narrowed(&self, seen: impl Fn(&Served) -> bool) -> Option<Self> {
        let candidates = self.candidates();
        if candidates.iter().all(|model| seen(model)) {
            return Some(self.clone());
        }
        let Self::Label { label, models } = self else { return None };
        let seen: Vec<_> = models.iter().filter(|model| seen(model)).cloned().collect();
        (!seen.is_empty()).then(|| Self::Label { label: Arc::clone(label), models: seen.into() })
    }

    /// The only candidate, else the answer that names all of them.
    pub(super) fn alone(&self, name: &str) -> Result<&Arc<Served>, Rejection> {
        self.single().ok_or_else(|| Rejection::ModelAmbiguous {
            name: name.to_owned(),
            candidates: self.candidates().iter().map(|model| model.name().to_owned()).collect(),
        })
    }

    /// Which of two things it is, whatever state they are in.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Model(model) => format!("model {}", model.effective.id),
            Self::Adapter { adapter, .. } => format!("adapter {}", adapter.id),
            Self::Label { label, models } => {
                let namespace = models.first().map(|model| &*model.effective.id.namespace);
                format!("label {}/{label}", namespace.unwrap_or_default())
            }
        }
    }

    /// What to call it where its short name means several things.
    pub(super) fn full_name(&self) -> String {
        match self {
            Self::Model(model) => model.name().to_owned(),
            Self::Adapter { adapter, .. } => format!("{}/{}", adapter.id.namespace, adapter.name),
            Self::Label { label, models } => {
                let namespace = models.first().map(|model| &*model.effective.id.namespace);
                format!("{}/{label}", namespace.unwrap_or_default())
            }
        }
    }
}
