//! Who asks for which name, rank by rank: own names, service labels, aliases, adapters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Adapter, Cause, Named, Served};

/// Names of one rank and all who claim them.
pub(super) type Claims = BTreeMap<String, Vec<Named>>;

/// Models by their own names.
pub(super) fn own(models: &[Arc<Served>]) -> Claims {
    let mut claims = Claims::new();
    for model in models {
        let name = model.effective.id.name.to_string();
        claims.entry(name).or_default().push(Named::Model(Arc::clone(model)));
    }
    claims
}

/// Labels, one group for each namespace: models of two namespaces never answer for one another.
pub(super) fn labels(models: &[Arc<Served>]) -> Vec<(Arc<str>, Named)> {
    let mut groups: BTreeMap<(Arc<str>, &str), Vec<Arc<Served>>> = BTreeMap::new();
    for model in models {
        let namespace = &model.effective.id.namespace;
        for label in &model.effective.service_labels {
            let group = groups.entry((Arc::clone(namespace), label)).or_default();
            group.push(Arc::clone(model));
        }
    }
    let named = |((namespace, label), mut models): ((Arc<str>, &str), Vec<Arc<Served>>)| {
        models.sort_by(|a, b| a.effective.id.cmp(&b.effective.id));
        models.dedup_by(|a, b| a.effective.id == b.effective.id);
        (namespace, Named::Label { label: label.into(), models: models.into() })
    };
    groups.into_iter().map(named).collect()
}

/// Models by their aliases.
pub(super) fn aliases(models: &[Arc<Served>]) -> Claims {
    let mut claims = Claims::new();
    for model in models {
        for alias in &model.effective.aliases {
            let claimants = claims.entry(alias.clone()).or_default();
            let claimant = Named::Model(Arc::clone(model));
            if claimants.iter().all(|known| known.key() != claimant.key()) {
                claimants.push(claimant);
            }
        }
    }
    claims
}

/// An adapter and its model, or why it answers to nobody.
pub(super) fn based(adapter: &Arc<Adapter>, base: Option<&Arc<Served>>) -> Result<Named, Cause> {
    let base = base.ok_or(Cause::BaseMissing)?;
    if !base.takes_adapters() {
        return Err(Cause::BaseTakesNone);
    }
    Ok(Named::Adapter { adapter: Arc::clone(adapter), base: Arc::clone(base) })
}
