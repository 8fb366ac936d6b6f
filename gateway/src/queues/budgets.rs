//! The `--vram-budget`s: how much the residents of a group may take together.

use std::collections::BTreeMap;

use flexinfer_core::ids::GroupId;
use flexinfer_core::sharing::Capacity;

/// MiB by group: `group` is a group of that name in any namespace, `namespace/group` that one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets(pub BTreeMap<String, u64>);

impl Budgets {
    /// What fits into `group` at the same time.
    pub fn capacity(&self, group: &GroupId) -> Capacity {
        let named = names(group).and_then(|names| names.iter().find_map(|name| self.0.get(name)));
        named.map_or(Capacity::One, |mebibytes| Capacity::Vram(*mebibytes))
    }

    /// The budgets that none of `groups` goes by; most likely they are misspelt.
    pub fn unused<'a>(&self, groups: impl Iterator<Item = &'a GroupId>) -> Vec<&str> {
        let known: Vec<String> = groups.filter_map(names).flatten().collect();
        self.0.keys().map(String::as_str).filter(|name| !known.iter().any(|k| k == name)).collect()
    }
}

/// What a budget may call `group`, the closest first. A model that shares with nobody has none.
fn names(group: &GroupId) -> Option<[String; 2]> {
    match group {
        GroupId::Shared { namespace, name } => {
            Some([format!("{namespace}/{name}"), name.to_string()])
        }
        GroupId::Alone(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use flexinfer_core::ids::ModelId;

    use super::*;

    fn shared(namespace: &str, name: &str) -> GroupId {
        GroupId::Shared { namespace: namespace.into(), name: name.into() }
    }

    fn budgets() -> Budgets {
        Budgets(
            [("gpu0".to_owned(), 100), ("lab/gpu0".to_owned(), 7), ("gpu1".to_owned(), 1)].into(),
        )
    }

    #[test]
    fn a_budget_of_one_namespace_wins_over_that_of_all() {
        assert_eq!(budgets().capacity(&shared("default", "gpu0")), Capacity::Vram(100));
        assert_eq!(budgets().capacity(&shared("lab", "gpu0")), Capacity::Vram(7));
        assert_eq!(budgets().capacity(&shared("lab", "gpu2")), Capacity::One);
        let alone = GroupId::Alone(ModelId::new("default", "gpu0"));
        assert_eq!(budgets().capacity(&alone), Capacity::One);
    }

    #[test]
    fn budgets_that_no_group_goes_by_are_told() {
        let groups = [shared("default", "gpu0"), shared("default", "gpu9")];
        assert_eq!(budgets().unused(groups.iter()), ["gpu1", "lab/gpu0"]);
    }
}
