//! Who writes an object, how often it is put back, and when all that is forgotten.

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
fn put_back(contest: &mut Contest, writers: &[&str], seconds: std::ops::Range<u64>) -> Vec<u64> {
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

#[test]
fn what_was_left_alone_for_ten_minutes_need_not_be_remembered() {
    let mut contest = made();
    assert!(!contest.is_over(at(599)) && contest.is_over(at(600)));
    contest.wrote("a", None, at(600));
    contest.wrote("a", None, at(601));
    assert!(!contest.is_over(at(601 + 2 + 599)) && contest.is_over(at(601 + 2 + 600)));
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
