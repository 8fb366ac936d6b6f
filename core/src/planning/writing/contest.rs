//! Put-backs: what somebody else writes is put back at once, and what is written again and again, by an admission
//! policy, an updater of images or an autoscaler that was not told of, less and less often. Two programs that
//! each undo the other's writes as fast as they can wear down the API server, and the pods with it.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

use crate::moment::Moment;

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
            (false, _) => 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
    }

    fn itself(seconds: u64) -> (Stake, Moment) {
        (Stake::Itself, at(seconds))
    }

    fn by(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// The seconds of one hour in which an object is put back that these write whenever they find it so.
    fn put_back(
        contest: &mut Contest,
        writers: &[&str],
        seconds: std::ops::Range<u64>,
    ) -> Vec<u64> {
        let mut all = Vec::new();
        for second in seconds {
            if contest.waits("a", Some(&by(writers)), itself(second)).is_none() {
                contest.wrote("a", Some(by(writers)), at(second));
                all.push(second);
            }
        }
        all
    }

    fn made() -> Contest {
        let mut contest = Contest::default();
        contest.wrote("a", None, at(0));
        contest
    }

    #[test]
    fn what_comes_again_and_again_is_put_back_less_and_less_often() {
        let all = put_back(&mut made(), &["kyverno"], 0..1000);
        assert_eq!(all, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811], "at most five minutes apart");
    }

    #[test]
    fn engines_beside_the_one_that_has_their_gpu_are_ended_every_ten_seconds() {
        let mut contest = made();
        let mut all = Vec::new();
        for second in 0..60 {
            let shared = (Stake::SharedGpu, at(second));
            if contest.waits("a", Some(&by(&["keda"])), shared).is_none() {
                contest.wrote("a", Some(by(&["keda"])), at(second));
                all.push(second);
            }
        }
        assert_eq!(all, [0, 1, 3, 7, 15, 25, 35, 45, 55]);
        let other = contest.waits("a", Some(&by(&["keda"])), itself(60));
        assert_eq!(other, Some(at(55 + 256)), "what costs nobody a GPU waits as ever");
    }

    #[test]
    fn who_only_writes_the_status_is_no_writer() {
        let entry = |manager: &str, subresource: Option<&str>| ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            subresource: subresource.map(str::to_owned),
            ..ManagedFieldsEntry::default()
        };
        let all = [
            entry("flexinfer-controller", None),
            entry("kube-controller-manager", Some("status")),
            entry("horizontal-pod-autoscaler", Some("scale")),
        ];
        assert_eq!(writers(&all), by(&["flexinfer-controller", "horizontal-pod-autoscaler"]));
    }

    #[test]
    fn what_is_wanted_anew_is_written_at_once_and_forgets_nothing() {
        let mut contest = made();
        put_back(&mut contest, &["hpa"], 0..30);
        assert!(contest.waits("a", Some(&by(&["hpa"])), itself(30)).is_some());
        assert_eq!(contest.waits("b", Some(&by(&["hpa"])), itself(30)), None);
        contest.wrote("b", Some(by(&["hpa"])), at(30));
        assert_eq!(
            contest.waits("b", Some(&by(&["hpa"])), itself(30)),
            Some(at(31)),
            "the others are the same"
        );
    }

    #[test]
    fn who_comes_new_is_put_back_at_once() {
        let mut contest = made();
        put_back(&mut contest, &["kyverno"], 0..30);
        assert_eq!(contest.waits("a", Some(&by(&["kyverno", "kubectl-edit"])), itself(20)), None);
        contest.wrote("a", Some(by(&["kyverno", "kubectl-edit"])), at(20));
        assert!(contest.waits("a", Some(&by(&["kubectl-edit"])), itself(21)).is_some());
    }

    #[test]
    fn an_object_that_was_left_alone_for_long_is_put_back_at_once_as_the_first_time() {
        let mut contest = made();
        put_back(&mut contest, &["kyverno"], 0..30);
        assert_eq!(put_back(&mut contest, &["kyverno"], 700..708), [700, 701, 703, 707]);
    }

    #[test]
    fn what_is_deleted_is_made_again_at_once_although_a_program_changes_it_all_the_time() {
        let mut contest = made();
        put_back(&mut contest, &["keel"], 0..520);
        assert_eq!(contest.waits("a", Some(&by(&["keel"])), itself(520)), Some(at(811)));
        let mut made_anew = Vec::new();
        for second in 520..560 {
            if contest.waits("a", None, itself(second)).is_none() {
                contest.wrote("a", None, at(second));
                made_anew.push(second);
            }
        }
        assert_eq!(made_anew, [520, 521, 523, 527, 535, 545, 555], "where that goes on as well");
        let still = contest.waits("a", Some(&by(&["keel"])), itself(560));
        assert_eq!(still, Some(at(811)), "the program's changes wait as before");
    }

    fn others() -> Vec<(String, String)> {
        [("hpa", ".spec.replicas"), ("kyverno", ".spec.template")]
            .map(|(who, field)| (who.to_owned(), field.to_owned()))
            .to_vec()
    }

    #[test]
    fn a_new_wish_undoes_nothing_of_what_others_wrote() {
        let contest = made();
        assert_eq!(contest.undone("a", true, others()), others());
        assert_eq!(contest.undone("b", true, others()), [], "replicas that are its own again, say");
    }

    #[test]
    fn a_process_that_begins_goes_by_the_hash_and_cannot_tell_whose_replicas_are() {
        let contest = Contest::default();
        assert_eq!(contest.undone("a", true, others()), others()[1..]);
        assert_eq!(contest.undone("a", false, others()), []);
    }
}
