//! Who goes by which name. Nothing here depends on the order that models come in: where two claim
//! a name of the same rank, neither gets it and both are told.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::claims::{self, Claims};
use super::{Adapter, Cause, Conflict, Named, Served};

/// A longer name is not compared with others: nobody means it.
const LONGEST_COMPARED: usize = 100;
/// How alike two names must be for one to be suggested for the other, from 0 to 1.
const ALIKE: f64 = 0.8;
const MOST_SUGGESTIONS: usize = 3;
/// The tag that Ollama's clients add to names that have none.
const LATEST: &str = ":latest";

/// Names and their owners, as spelled and in lower case. Requests only look names up: whoever defines
/// models has no reason to choose them so that they collide, so a quick hash will do.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    exact: HashMap<String, Owner, FixedState>,
    folded: HashMap<String, Owner, FixedState>,
}

/// Who goes by a name.
#[derive(Clone, Debug)]
pub(super) enum Owner {
    One(Named),
    Several(Vec<Named>),
    /// Nobody who is offered: a parked model, as lists would have it.
    Parked(Arc<str>),
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
    /// The names of `models` and `adapters`, and who does not get one that it asked for.
    pub(super) fn of(models: &[Arc<Served>], adapters: &[Arc<Adapter>]) -> (Self, Vec<Conflict>) {
        let mut names = Self::default();
        let mut conflicts = Vec::new();
        let offered: Vec<_> =
            models.iter().filter(|model| !model.effective.parked).cloned().collect();

        // 1. Own names.
        for model in &offered {
            let named = Named::Model(Arc::clone(model));
            names.exact.insert(model.effective.id.to_string(), Owner::One(named));
        }
        names.grant(claims::own(&offered), Cause::NameShared, &mut conflicts);

        // 2. Service labels, of the names that are left.
        let mut shared = Claims::new();
        for (namespace, label) in claims::labels(&offered) {
            let name = label.label().unwrap_or_default().to_owned();
            let full = format!("{namespace}/{name}");
            names.exact.entry(full).or_insert_with(|| Owner::One(label.clone()));
            shared.entry(name).or_default().push(label);
        }
        names.take_left(&mut shared, Cause::LabelIsAName, &mut conflicts);
        names.grant(shared, Cause::LabelShared, &mut conflicts);

        // 3. Aliases.
        let mut aliases = claims::aliases(&offered);
        names.take_left(&mut aliases, Cause::AliasIsAName, &mut conflicts);
        names.grant(aliases, Cause::AliasShared, &mut conflicts);

        // 4. Adapters.
        names.add_adapters(models, adapters, &mut conflicts);

        // 5. Parked models are known by the names that nobody else has.
        for model in models.iter().filter(|model| model.effective.parked) {
            let id = &model.effective.id;
            let own = [id.to_string(), id.name.to_string()];
            for name in own.into_iter().chain(model.effective.aliases.iter().cloned()) {
                names
                    .exact
                    .entry(name)
                    .or_insert_with(|| Owner::Parked(Arc::clone(&model.listed_as)));
            }
        }
        names.fold();
        conflicts.sort();
        conflicts.dedup();
        (names, conflicts)
    }

    /// Takes out of `claims` those names that belong to a higher rank, and tells whoever wanted them.
    fn take_left(&self, claims: &mut Claims, cause: Cause, conflicts: &mut Vec<Conflict>) {
        claims.retain(|name, claimants| {
            let Some(owner) = self.exact.get(name) else { return true };
            for claimant in claimants {
                let same = |owner: &Named| owner.key() == claimant.key();
                if !owner.members().iter().any(same) {
                    conflicts.extend(Conflict::between(claimant, name, cause, owner.members()));
                }
            }
            false
        });
    }

    /// Gives each name to its claimant, or to none of several.
    fn grant(&mut self, claims: Claims, cause: Cause, conflicts: &mut Vec<Conflict>) {
        for (name, claimants) in claims {
            if claimants.len() > 1 {
                for claimant in &claimants {
                    conflicts.extend(Conflict::between(claimant, &name, cause, &claimants));
                }
            }
            self.exact.extend(Owner::of(claimants).map(|owner| (name, owner)));
        }
    }

    fn add_adapters(
        &mut self,
        models: &[Arc<Served>],
        adapters: &[Arc<Adapter>],
        conflicts: &mut Vec<Conflict>,
    ) {
        let (mut short, mut full) = (Claims::new(), Claims::new());
        let mut parked = Vec::new();
        for adapter in adapters {
            let base = models.iter().find(|model| model.effective.id == adapter.base);
            match claims::based(adapter, base) {
                Ok(Named::Adapter { base, .. }) if base.effective.parked => {
                    parked.push((adapter.name.to_string(), Arc::clone(&base.listed_as)));
                }
                Ok(named) => {
                    let name = format!("{}/{}", adapter.id.namespace, adapter.name);
                    full.entry(name).or_default().push(named.clone());
                    short.entry(adapter.name.to_string()).or_default().push(named);
                }
                Err(cause) => conflicts.push(Conflict {
                    model: adapter.base.clone(),
                    name: adapter.name.to_string(),
                    cause,
                    others: Vec::new(),
                }),
            }
        }
        self.take_left(&mut short, Cause::AdapterIsAName, conflicts);
        self.grant(short, Cause::AdapterShared, conflicts);
        for (name, claimants) in full {
            if let Some(owner) = Owner::of(claimants) {
                self.exact.entry(name).or_insert(owner);
            }
        }
        for (name, base) in parked {
            self.exact.entry(name).or_insert(Owner::Parked(base));
        }
    }

    /// Fills the names in lower case, each owned by all who go by one of its spellings; of parked models, by
    /// the first, so that what is told of them does not change.
    fn fold(&mut self) {
        let mut spellings: HashMap<String, Vec<Named>> = HashMap::new();
        let mut parked: HashMap<String, Arc<str>> = HashMap::new();
        for (name, owner) in &self.exact {
            let folded = name.to_lowercase();
            if let Owner::Parked(listed) = owner {
                let first = parked.entry(folded).or_insert_with(|| Arc::clone(listed));
                if **listed < **first {
                    *first = Arc::clone(listed);
                }
                continue;
            }
            spellings.entry(folded).or_default().extend_from_slice(owner.members());
        }
        let owner = |mut members: Vec<Named>| {
            members.sort_by_cached_key(Named::key);
            members.dedup_by_key(|member| member.key());
            Owner::of(members)
        };
        let parked = parked.into_iter().map(|(name, listed)| (name, Owner::Parked(listed)));
        let offered = spellings.into_iter().filter_map(|(name, all)| Some((name, owner(all)?)));
        self.folded = parked.collect();
        self.folded.extend(offered);
    }

    /// Whoever goes by `name`: to the letter, else with Ollama's default tag added or taken away,
    /// else whatever the case of the letters.
    pub(super) fn find(&self, name: &str) -> Option<&Owner> {
        let exact = self.exact.get(name).or_else(|| self.exact.get(&*other_tag(name)));
        exact.or_else(|| {
            let folded = name.to_lowercase();
            self.folded.get(&folded).or_else(|| self.folded.get(&*other_tag(&folded)))
        })
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

/// `m:latest` for `m`, and the other way round.
fn other_tag(name: &str) -> Cow<'_, str> {
    match name.strip_suffix(LATEST) {
        Some(bare) => Cow::Borrowed(bare),
        None => Cow::Owned(format!("{name}{LATEST}")),
    }
}

impl Owner {
    /// Whoever of `claimants` it is, if there is one.
    fn of(mut claimants: Vec<Named>) -> Option<Self> {
        let last = claimants.pop()?;
        if claimants.is_empty() {
            return Some(Self::One(last));
        }
        claimants.push(last);
        Some(Self::Several(claimants))
    }

    fn members(&self) -> &[Named] {
        match self {
            Self::One(named) => std::slice::from_ref(named),
            Self::Several(several) => several,
            Self::Parked(_) => &[],
        }
    }
}
