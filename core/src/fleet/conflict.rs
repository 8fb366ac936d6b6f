//! Names that a model cannot have, for its conditions and the log.

use std::fmt;
use std::sync::Arc;

use super::Served;
use crate::ids::ModelId;

/// A name that `model` asked for and does not go by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The model that does not get the name.
    pub model: ModelId,
    /// The name.
    pub name: String,
    /// Why not.
    pub cause: Cause,
    /// The other models concerned, sorted.
    pub others: Vec<ModelId>,
}

/// Why a model does not get a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Models of other namespaces have the same name: each goes by `namespace/name` only.
    NameShared,
    /// The alias is a Model's own name, which goes first.
    AliasIsAName,
    /// Other models claim the same alias: none of them gets it.
    AliasShared,
}

impl Conflict {
    /// What keeps `model` from `name`, which those of `others` that are not itself have or want.
    pub(super) fn between(
        model: &Served,
        name: &str,
        cause: Cause,
        others: &[Arc<Served>],
    ) -> Self {
        let model = model.effective.id.clone();
        let ids = others.iter().map(|other| &other.effective.id);
        let mut others: Vec<ModelId> = ids.filter(|id| **id != model).cloned().collect();
        others.sort();
        Self { model, name: name.to_owned(), cause, others }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, name, cause, others } = self;
        let others = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match cause {
            Cause::NameShared => {
                write!(
                    formatter,
                    "{model} goes by {model} only, since {others} has the name {name} too"
                )
            }
            Cause::AliasIsAName => write!(
                formatter,
                "{model} does not go by the alias {name}, which is the name of {others}; remove the alias"
            ),
            Cause::AliasShared => write!(
                formatter,
                "{model} does not go by the alias {name}, which {others} claims too; let one of them have it"
            ),
        }
    }
}
