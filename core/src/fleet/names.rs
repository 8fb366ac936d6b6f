//! Who goes by which name. Nothing here depends on the order that models come in: where two claim
//! a name of the same rank, neither gets it and both are told.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Cause, Conflict, Served};

/// A longer name is not compared with others: nobody means it.
const LONGEST_COMPARED: usize = 100;
/// How alike two names must be for one to be suggested for the other, from 0 to 1.
const ALIKE: f64 = 0.8;
const MOST_SUGGESTIONS: usize = 3;

/// Names and their owners, as spelled and in lower case.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    exact: HashMap<String, Owner>,
    folded: HashMap<String, Owner>,
}

/// Who goes by a name.
#[derive(Clone, Debug)]
pub(super) enum Owner {
    One(Arc<Served>),
    Several(Vec<Arc<Served>>),
    Parked,
}

/// Gives each model the short name where no namespace but its own offers it.
pub(super) fn list_by_shortest_name(models: &mut [Served]) {
    let mut offered: HashMap<Arc<str>, usize> = HashMap::new();
    for model in models.iter().filter(|model| !model.effective.parked) {
        *offered.entry(Arc::clone(&model.effective.id.name)).or_default() += 1;
    }
    for model in models {
        let id = &model.effective.id;
        let in_all = offered.get(&id.name).copied().unwrap_or_default();
        let alone = in_all == usize::from(!model.effective.parked);
        model.listed_as = if alone { Arc::clone(&id.name) } else { id.to_string().into() };
    }
}

impl Names {
    /// The names of `models`, and who does not get one that it asked for.
    pub(super) fn of(models: &[Arc<Served>]) -> (Self, Vec<Conflict>) {
        let mut names = Self::default();
        let mut conflicts = Vec::new();
        let offered = || models.iter().filter(|model| !model.effective.parked);

        // 1. Own names.
        let mut own: BTreeMap<&str, Vec<Arc<Served>>> = BTreeMap::new();
        for model in offered() {
            let id = &model.effective.id;
            names.exact.insert(id.to_string(), Owner::One(Arc::clone(model)));
            own.entry(&id.name).or_default().push(Arc::clone(model));
        }
        names.grant(own, Cause::NameShared, &mut conflicts);

        // 2. Aliases, of the names that are left.
        let mut aliases: BTreeMap<&str, Vec<Arc<Served>>> = BTreeMap::new();
        for model in offered() {
            for alias in &model.effective.aliases {
                match names.exact.get(alias) {
                    None => aliases.entry(alias).or_default().push(Arc::clone(model)),
                    Some(owner) if owner.members().contains(model) => {}
                    Some(owner) => {
                        let cause = Cause::AliasIsAName;
                        conflicts.push(Conflict::between(model, alias, cause, owner.members()));
                    }
                }
            }
        }
        for claimants in aliases.values_mut() {
            claimants.dedup();
        }
        names.grant(aliases, Cause::AliasShared, &mut conflicts);

        // 3. Parked models are known by the names that nobody else has.
        for model in models.iter().filter(|model| model.effective.parked) {
            let id = &model.effective.id;
            let own = [id.to_string(), id.name.to_string()];
            for name in own.into_iter().chain(model.effective.aliases.iter().cloned()) {
                names.exact.entry(name).or_insert(Owner::Parked);
            }
        }
        names.fold();
        conflicts.sort();
        (names, conflicts)
    }

    /// Gives each name to its claimant, or to none of several.
    fn grant(
        &mut self,
        claims: BTreeMap<&str, Vec<Arc<Served>>>,
        cause: Cause,
        conflicts: &mut Vec<Conflict>,
    ) {
        for (name, claimants) in claims {
            if claimants.len() > 1 {
                let conflict =
                    |model: &Arc<Served>| Conflict::between(model, name, cause, &claimants);
                conflicts.extend(claimants.iter().map(conflict));
            }
            self.exact.insert(name.to_owned(), Owner::of(claimants));
        }
    }

    /// Fills the names in lower case, each owned by all who go by one of its spellings.
    fn fold(&mut self) {
        let mut spellings: HashMap<String, Vec<Arc<Served>>> = HashMap::new();
        for (name, owner) in &self.exact {
            spellings.entry(name.to_lowercase()).or_default().extend_from_slice(owner.members());
        }
        let owner = |mut members: Vec<Arc<Served>>| {
            members.sort_by(|a, b| a.effective.id.cmp(&b.effective.id));
            members.dedup();
            Owner::of(members)
        };
        self.folded = spellings.into_iter().map(|(name, members)| (name, owner(members))).collect();
    }

    pub(super) fn find(&self, name: &str) -> Option<&Owner> {
        self.exact.get(name).or_else(|| self.folded.get(&name.to_lowercase()))
    }

    /// Names that look like `name`, best first. Those that find no model are no help.
    pub(super) fn nearest(&self, name: &str) -> Vec<String> {
        if name.len() > LONGEST_COMPARED {
            return Vec::new();
        }
        let wanted = name.to_lowercase();
        let mut alike: Vec<(f64, &str)> = self
            .exact
            .iter()
            .filter(|(known, owner)| {
                known.len() <= LONGEST_COMPARED && matches!(owner, Owner::One(_))
            })
            .map(|(known, _)| {
                (strsim::jaro_winkler(&wanted, &known.to_lowercase()), known.as_str())
            })
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .collect();
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        alike.into_iter().take(MOST_SUGGESTIONS).map(|(_, known)| known.to_owned()).collect()
    }
}

impl Owner {
    /// Whoever of `models` it is; nobody at all means that only parked models have the name.
    fn of(mut models: Vec<Arc<Served>>) -> Self {
        match (models.pop(), models.is_empty()) {
            (None, _) => Self::Parked,
            (Some(only), true) => Self::One(only),
            (Some(last), false) => {
                models.push(last);
                Self::Several(models)
            }
        }
    }

    fn members(&self) -> &[Arc<Served>] {
        match self {
            Self::One(model) => std::slice::from_ref(model),
            Self::Several(models) => models,
            Self::Parked => &[],
        }
    }
}
