//! Names that a model or an adapter cannot have, for conditions and the log.

use std::fmt;

use super::Named;
use crate::ids::ModelId;

/// A name that somebody asked for and does not go by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The model that does not get the name; of an adapter's name, the model that it is added to.
    pub model: ModelId,
    /// The name.
    pub name: String,
    /// Why not.
    pub cause: Cause,
    /// The other models concerned, sorted.
    pub others: Vec<ModelId>,
}

/// Why a name is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Models of other namespaces have the same name: each goes by `namespace/name` only.
    NameShared,
    /// The alias is a Model's own name, or a service label, which go first.
    AliasIsAName,
    /// Other models claim the same alias: none of them gets it.
    AliasShared,
    /// The service label is a Model's own name, which goes first.
    LabelIsAName,
    /// Models of other namespaces offer the same label: each group goes by `namespace/label` only.
    LabelShared,
    /// The adapter's name is taken by a Model, a label or an alias, which go first.
    AdapterIsAName,
    /// Other adapters have the same name: none of them gets it.
    AdapterShared,
    /// There is no Model of the name that the adapter wants to be added to.
    BaseMissing,
    /// The adapter's model has an engine that takes no adapters.
    BaseTakesNone,
}

impl Cause {
    const fn is_about_an_adapter(self) -> bool {
        matches!(self, Self::AdapterIsAName | Self::AdapterShared)
    }
}

impl Conflict {
    /// What keeps `loser` from `name`, which those of `others` that are not itself have or want: told
    /// to each of its models that others stand in the way of.
    pub(super) fn between<'n>(
        loser: &'n Named,
        name: &'n str,
        cause: Cause,
        others: &'n [Named],
    ) -> impl Iterator<Item = Self> + 'n {
        loser.candidates().iter().filter_map(move |model| {
            let model = model.effective.id.clone();
            let of = |other: &'n Named| other.candidates().iter().map(|model| &model.effective.id);
            let ids = others.iter().filter(|other| other.key() != loser.key()).flat_map(of);
            let mut others: Vec<ModelId> = ids.filter(|id| **id != model).cloned().collect();
            others.sort();
            others.dedup();
            let itself = others.is_empty() && !cause.is_about_an_adapter();
            (!itself).then(|| Self { model, name: name.to_owned(), cause, others })
        })
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, name, cause, others } = self;
        let mut others = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if others.is_empty() {
            // An adapter can also stand in the way of another one of the same model, or its model itself.
            others = model.to_string();
        }
        match cause {
            Cause::NameShared => write!(
                formatter,
                "{model} goes by {model} only, since {others} has the name {name} too"
            ),
            Cause::AliasIsAName => write!(
                formatter,
                "{model} does not go by the alias {name}, which is the name of {others}; remove the alias"
            ),
            Cause::AliasShared => write!(
                formatter,
                "{model} does not go by the alias {name}, which {others} claims too; let one of them have it"
            ),
            Cause::LabelIsAName => write!(
                formatter,
                "{model} does not go by the service label {name}, which is the name of {others}; rename the label"
            ),
            Cause::LabelShared => write!(
                formatter,
                "{model} goes by the service label {}/{name} only, since {others} offers {name} in another namespace",
                model.namespace
            ),
            Cause::AdapterIsAName => write!(
                formatter,
                "the adapter {name} of {model} is not served: its name is taken by {others}; rename the adapter"
            ),
            Cause::AdapterShared => write!(
                formatter,
                "the adapter {name} of {model} is not served: another adapter, of {others}, has the same name; rename one"
            ),
            Cause::BaseMissing => write!(
                formatter,
                "the adapter {name} is not served: there is no Model {model}; correct its modelRef"
            ),
            Cause::BaseTakesNone => write!(
                formatter,
                "the adapter {name} of {model} is not served: its engine takes no adapters; use the vllm backend"
            ),
        }
    }
}
