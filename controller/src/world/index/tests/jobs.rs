//! Jobs that go, and whether that is somebody's doing.

use k8s_openapi::api::batch::v1::Job;

use super::*;

/// A Job of the model `m` that has come to this.
fn job(name: &str, come_to: &str) -> Job {
    let conditions = json!([{ "type": come_to, "status": "True" }]);
    let job =
        json!({ "metadata": metadata(name, name, "5"), "status": { "conditions": conditions } });
    serde_json::from_value(job).unwrap()
}

#[test]
fn that_a_job_goes_which_has_ended_is_nobodys_doing_whoever_watched() {
    let (now, first) = (Moment::ORIGIN, model("a", "9", "chat"));
    let jobs = [job("done", "Complete"), job("vain", "Failed"), job("works", "Suspended")];
    let watched = |index: &mut Index| {
        for job in &jobs {
            index.forget_job(job);
        }
    };
    let listed = |index: &mut Index| drop(index.keep_jobs(&BTreeSet::new()));
    for go in [&watched as &dyn Fn(&mut Index), &listed] {
        let mut index = Index::default();
        index.see_model(first.clone(), now);
        for job in &jobs {
            index.see_job(job.clone());
            index.note_contest(&first, (Kind::Job, &job.name_any()), Contest::default(), now);
        }
        let known = |index: &Index| -> Vec<String> {
            let seen = index.models.values().next().unwrap();
            seen.contests.keys().map(|(_, name)| name.clone()).collect()
        };
        go(&mut index);
        assert_eq!(known(&index), ["works"], "it was deleted at its work");
        assert!(index.objects.is_empty());
    }
}

#[test]
fn what_is_known_of_a_job_that_has_ended_and_is_there_is_not_forgotten_at_a_new_list() {
    let (now, first) = (Moment::ORIGIN, model("a", "9", "chat"));
    let mut index = Index::default();
    index.see_model(first.clone(), now);
    index.see_job(job("done", "Complete"));
    index.note_contest(&first, (Kind::Job, "done"), Contest::default(), now);
    index.keep_jobs(&[("ai".to_owned(), "done".to_owned())].into());
    assert_eq!(index.models.values().next().unwrap().contests.len(), 1);
}
