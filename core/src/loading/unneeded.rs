//! Which weights in a node's memory nobody needs any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::moment::Moment;

/// A model that is gone for less may only have been written anew.
const PATIENCE: Duration = Duration::from_secs(600);

/// Since when the model of each folder is missing, by `<namespace>/<model>`.
#[derive(Clone, Debug, Default)]
pub struct Unneeded {
    missing: BTreeMap<String, Moment>,
}

impl Unneeded {
    /// Which of the folders `held` are to be removed `now`: those whose model is neither among `models` nor has
    /// a pod on this node (`in_use`), and has not had for ten minutes. To be asked only with lists that are
    /// complete; where one could not be had, nothing is to be removed.
    pub fn of(
        &mut self,
        held: &BTreeSet<String>,
        models: &BTreeSet<String>,
        in_use: &BTreeSet<String>,
        now: Moment,
    ) -> Vec<String> {
        let needed = |name: &String| models.contains(name) || in_use.contains(name);
        self.missing.retain(|name, _| held.contains(name) && !needed(name));
        for name in held.iter().filter(|name| !needed(name)) {
            self.missing.entry(name.clone()).or_insert(now);
        }
        let patient = |since: &Moment| now.since(*since) < PATIENCE;
        let due = self.missing.iter().filter(|(_, since)| !patient(since));
        due.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn at(minutes: u64) -> Moment {
        Moment::after_origin(Duration::from_mins(minutes))
    }

    #[test]
    fn weights_go_ten_minutes_after_their_model() {
        let mut unneeded = Unneeded::default();
        let held = set(&["models/llama", "models/qwen"]);
        let mut of = |models: &[&str], used: &[&str], now| {
            unneeded.of(&held, &set(models), &set(used), at(now))
        };
        assert_eq!(of(&["models/llama"], &[], 0), [""; 0]);
        assert_eq!(of(&["models/llama"], &[], 9), [""; 0]);
        assert_eq!(of(&["models/llama"], &[], 10), ["models/qwen"]);
    }

    #[test]
    fn a_model_that_comes_back_or_a_pod_that_reads_keeps_them() {
        let mut unneeded = Unneeded::default();
        let held = set(&["models/qwen"]);
        let mut of = |models: &[&str], used: &[&str], now| {
            unneeded.of(&held, &set(models), &set(used), at(now))
        };
        of(&[], &[], 0);
        assert_eq!(of(&["models/qwen"], &[], 9), [""; 0]);
        assert_eq!(of(&[], &[], 11), [""; 0], "counted anew");
        assert_eq!(of(&[], &["models/qwen"], 30), [""; 0]);
        assert_eq!(of(&[], &[], 31), [""; 0], "counted anew");
        assert_eq!(of(&[], &[], 41), ["models/qwen"]);
    }
}
