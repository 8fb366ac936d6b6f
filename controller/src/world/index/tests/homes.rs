//! Under which owner an object is kept is known for as long as it is, whatever becomes of it.

use k8s_openapi::api::batch::v1::Job;

use super::*;

/// How many objects are kept.
fn kept(index: &Index) -> usize {
    let all = index.objects.values().map(|objects| {
        let alone = [objects.deployment.is_some(), objects.service.is_some()];
        let alone = alone.into_iter().chain([objects.files.is_some()]).filter(|there| *there);
        alone.count() + objects.jobs.len() + objects.pods.len() + objects.job_pods.len()
    });
    all.sum()
}

/// The pod with this label and no other.
fn labelled(uid: &str, version: &str, (key, value): (&str, &str)) -> Pod {
    let mut pod = pod(uid, version);
    pod.metadata.labels = Some([(key.to_owned(), value.to_owned())].into());
    pod
}

/// So many objects are kept, and the homes of all of them are known, and of no others.
#[track_caller]
fn are_kept(index: &Index, many: usize) {
    assert_eq!((kept(index), index.homes.len()), (many, many));
}

#[test]
fn homes_are_known_of_what_is_kept_and_of_nothing_else() {
    let job = |uid: &str| -> Job {
        serde_json::from_value(json!({ "metadata": metadata("m-fetch", uid, "5") })).unwrap()
    };
    let mut index = Index::default();
    index.see_deployment(deployment("d", "1"));
    index.wrote_job(job("j"));
    index.see_pod(pod("p", "1"));
    are_kept(&index, 3);
    // Others come in their places before it is told that they went.
    index.see_deployment(deployment("e", "2"));
    index.see_job(job("k"));
    index.see_pod(pod("q", "2"));
    are_kept(&index, 3);
    index.forget_deployment(&deployment("d", "3"));
    index.forget_job(&job("j"));
    index.forget_pod(&pod("p", "3"));
    are_kept(&index, 3);
    // One is now another model's, and one that no engine has.
    index.see_pod(labelled("q", "4", (keys::MODEL, "n")));
    are_kept(&index, 3);
    index.see_pod(labelled("q", "5", (keys::CACHE, "m")));
    are_kept(&index, 3);
    // Older sights of it say nothing.
    index.see_pod(labelled("q", "4", (keys::CACHE, "m")));
    index.see_pod(labelled("q", "3", (keys::MODEL, "o")));
    are_kept(&index, 3);
    index.see_pod(labelled("q", "6", ("app", "m")));
    are_kept(&index, 2);
    index.forget_deployment(&deployment("e", "7"));
    are_kept(&index, 1);
    index.keep_jobs(&BTreeSet::new());
    are_kept(&index, 0);
}
