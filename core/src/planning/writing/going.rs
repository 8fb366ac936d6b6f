//! That an object of a model's is being deleted and does not go, as it is told: until it is gone nothing of it is
//! written, so that an edit of the Model changes nothing.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{LONGEST, line};
use crate::moment::Moment;
use crate::planning::time::{moment, time};

/// What takes no longer is not told: whoever has put a finalizer there has something to do.
const SOON: Duration = Duration::from_secs(30);

/// The finalizer by which what belongs to an object goes first.
const DEPENDENTS_FIRST: &str = "foregroundDeletion";

/// An object that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Going {
    kind: &'static str,
    name: String,
    since: Moment,
    /// What keeps it.
    finalizers: Vec<String>,
}

impl Going {
    /// An object of this kind, if it is being deleted and something keeps it.
    pub fn of(kind: &'static str, there: &ObjectMeta) -> Option<Self> {
        let since = there.deletion_timestamp.as_ref().map(moment)?;
        let finalizers = there.finalizers.clone().filter(|all| !all.is_empty())?;
        let name = there.name.clone().unwrap_or_default();
        Some(Self { kind, name, since, finalizers })
    }

    /// What is told of it, and what to do.
    pub fn told(&self, now: Moment) -> Option<String> {
        let Self { kind, name, since, finalizers } = self;
        let others: Vec<String> = finalizers
            .iter()
            .filter(|known| *known != DEPENDENTS_FIRST)
            .map(|known| format!("`{known}`"))
            .collect();
        let why = if others.is_empty() {
            "waits until its pods have ended: delete those of lost nodes with `--force`".to_owned()
        } else {
            let (all, lower) = (others.join(", "), kind.to_lowercase());
            format!(
                "is kept by the finalizer {all}: see to whoever has to remove that, or do it by `kubectl edit {lower} {name}`"
            )
        };
        let since = time(*since).0;
        let told = format!(
            "until the {kind} `{name}` is gone no edit of the Model reaches it; it has been deleted at {since} and {why}"
        );
        (now >= self.until()).then(|| line(&told, LONGEST))
    }

    /// When it is told.
    pub fn until(&self) -> Moment {
        self.since + SOON
    }
}
