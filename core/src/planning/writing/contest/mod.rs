//! Put-backs: what somebody else writes is put back at once, and what is written again and again, by an admission
//! policy, an updater of images or an autoscaler that was not told of, less and less often. Two programs that
//! each undo the other's writes as fast as they can wear down the API server, and the pods with it.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

use crate::moment::Moment;

#[cfg(test)]
mod tests;

/// The wait after the first put-back; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest for what somebody changes.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The longest for what somebody deletes: nothing runs or is found without it.
const LONGEST_ABSENCE: Duration = Duration::from_secs(10);

/// The longest while an engine runs that somebody else has started beside the one that has their GPU.
const LONGEST_BESIDE: Duration = Duration::from_secs(10);

/// How long after that an object must have been left alone for all to be forgotten.
const QUIET: Duration = Duration::from_secs(600);

/// What it costs to leave an object as somebody else has made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stake {
    /// The object is not as it shall be.
    Itself,
    /// Engines run that shall not, on a GPU that is another's of their group.
    SharedGpu,
}

/// Everybody who wrote an object, by its `managedFields`. Who only says how it is, as Kubernetes' own controllers do in
/// its status, changes nothing of what is put back.
pub fn writers(entries: &[ManagedFieldsEntry]) -> BTreeSet<String> {
    let writes = |entry: &&ManagedFieldsEntry| {
        entry.subresource.as_deref().is_none_or(|part| part.is_empty() || part == "scale")
    };
    entries.iter().filter(writes).filter_map(|entry| entry.manager.clone()).collect()
}

/// What is known of the writes of one object, by this controller and others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contest {
    /// What was wanted at the last write; `None` before the first one of this process.
    wanted: Option<String>,
    /// Everybody who had written the object when it was put back.
    writers: BTreeSet<String>,
    /// Of put-backs of what was changed.
    changes: Repeats,
    /// Of makings anew of what was deleted, which is a person's remedy too: a program's changes cost it nothing.
    absences: Repeats,
}

/// What is done again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Repeats {
    /// How often in a row.
    times: u32,
    /// When it was done last.
    last: Moment,
}

impl Repeats {
    /// Not again before, where that is not to be longer after the last time.
    fn until(self, longest: Duration) -> Moment {
        let Some(doubled) = self.times.checked_sub(1) else { return self.last };
        let factor = 2_u32.saturating_pow(doubled);
        self.last + FIRST_WAIT.saturating_mul(factor).min(longest)
    }

    /// It is done for the first time, which is no repeat. Without a note of when, all would seem to be over, and what is
    /// known of a Job be forgotten before anybody has deleted it.
    fn begin(&mut self, now: Moment) {
        if self.times == 0 {
            self.last = now;
        }
    }

    /// Whether all is forgotten.
    fn is_over(self, longest: Duration, now: Moment) -> bool {
        now >= self.until(longest) + QUIET
    }

    /// It was done once more.
    fn count(&mut self, longest: Duration, now: Moment) {
        if self.is_over(longest, now) {
            self.times = 0;
        }
        self.last = now;
        self.times = self.times.saturating_add(1);
    }
}

impl Contest {
    /// Whether writing `wanted` would only put the object back.
    pub fn puts_back(&self, wanted: &str) -> bool {
        self.wanted.as_deref() == Some(wanted)
    }

    /// Until when an object, which is not as it is `wanted`, is left as it is: it was put back not long ago, and nobody
    /// but those who had written it then has written it since. One that has no `writers` is not there. What is wanted
    /// anew never waits.
    pub fn waits(
        &self,
        wanted: &str,
        writers: Option<&BTreeSet<String>>,
        (stake, now): (Stake, Moment),
    ) -> Option<Moment> {
        let until = match (writers, stake) {
            (Some(writers), _) if !writers.is_subset(&self.writers) => return None,
            (Some(_), Stake::Itself) => self.changes.until(LONGEST_WAIT),
            (Some(_), Stake::SharedGpu) => self.changes.until(LONGEST_BESIDE),
            (None, _) => self.absences.until(LONGEST_ABSENCE),
        };
        (self.puts_back(wanted) && now < until).then_some(until)
    }

    /// It was written as it is `wanted`, after these `writers`, or anew. How often in a row it was put back like this.
    pub fn wrote(&mut self, wanted: &str, writers: Option<BTreeSet<String>>, now: Moment) -> u32 {
        let times = match (self.puts_back(wanted), &writers) {
            (false, Some(_)) => 0,
            (false, None) => {
                self.absences.begin(now);
                0
            }
            (true, Some(_)) => {
                if self.changes.is_over(LONGEST_WAIT, now) {
                    self.writers = BTreeSet::new();
                }
                self.changes.count(LONGEST_WAIT, now);
                self.changes.times
            }
            (true, None) => {
                self.absences.count(LONGEST_ABSENCE, now);
                self.absences.times
            }
        };
        self.writers.extend(writers.into_iter().flatten());
        self.wanted = Some(wanted.to_owned());
        times
    }

    /// Whether there is nothing to remember of it any more.
    pub fn is_over(&self, now: Moment) -> bool {
        self.changes.is_over(LONGEST_WAIT, now) && self.absences.is_over(LONGEST_ABSENCE, now)
    }

    /// Which of the fields that `others` had written were put back by writing `wanted`, not changed by a new wish.
    /// A process that has just begun knows only whether the object carries the hash of the `same` wish, which says
    /// nothing of replicas.
    pub fn undone(
        &self,
        wanted: &str,
        same: bool,
        others: Vec<(String, String)>,
    ) -> Vec<(String, String)> {
        match self.wanted {
            Some(_) if self.puts_back(wanted) => others,
            None if same => {
                others.into_iter().filter(|(_, field)| field != ".spec.replicas").collect()
            }
            _ => Vec::new(),
        }
    }
}
