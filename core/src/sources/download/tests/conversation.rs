//! Listing a repository: URLs, pinning, redirects and the token, refusals, trying again.

use std::time::Duration;

use super::super::{Authorization, Conversation, Digest, Head, Hub, Selection, Step};
use super::{COMMIT, head, source, terms, terms_with};
use crate::activation::{Failure, Reason};

fn conversation(text: &str) -> Conversation {
    let all = Selection::default();
    source(text).conversation(&all, &terms()).unwrap().unwrap()
}

fn asked(conversation: &mut Conversation) -> super::super::Request {
    match conversation.next() {
        Step::Ask(request) => request,
        step => panic!("{step:?}"),
    }
}

fn failure(conversation: &mut Conversation, head: &Head) -> Failure {
    conversation.answered(head, b"");
    match conversation.next() {
        Step::Failed(failure) => failure,
        step => panic!("{step:?}"),
    }
}

#[test]
fn files_are_listed_at_the_revision_and_asked_for_at_the_commit() {
    let mut talk = conversation("hf://Org/Name@refs/pr/1");
    let request = asked(&mut talk);
    assert_eq!(
        request.url.as_str(),
        "https://hub.test/api/models/Org/Name/revision/refs%2Fpr%2F1?blobs=true"
    );
    assert_eq!(request.authorization, Authorization::HubToken);
    let sha256 = "AB".repeat(32);
    let body = format!(
        r#"{{"sha":"{COMMIT}","siblings":[
            {{"rfilename":"sub dir/a+b.gguf","size":9,"blobId":"{COMMIT}",
              "lfs":{{"sha256":"{sha256}","size":9,"pointerSize":130}}}},
            {{"rfilename":"config.json","size":2,"blobId":"{COMMIT}"}},
            {{"rfilename":"unknown"}}]}}"#
    );
    talk.answered(&head(200, &[]), body.as_bytes());
    let Step::Save(plan) = talk.next() else { panic!() };
    assert_eq!(plan.commit.as_deref(), Some(COMMIT));
    assert_eq!(plan.size(), 11);
    let seen = plan
        .files
        .iter()
        .map(|file| (file.url.as_str().to_owned(), file.size, file.digest.clone()))
        .collect::<Vec<_>>();
    let at = |path: &str| format!("https://hub.test/Org/Name/resolve/{COMMIT}/{path}");
    assert_eq!(
        seen,
        [
            (at("sub%20dir/a%2Bb.gguf"), Some(9), Some(Digest::Sha256(sha256.to_lowercase()))),
            (at("config.json"), Some(2), Some(Digest::GitBlob(COMMIT.to_owned()))),
            (at("unknown"), None, None),
        ]
    );
}

#[test]
fn sec_06_a_hub_that_answers_with_another_commit_than_was_asked_for_is_not_believed() {
    let other = "f".repeat(40);
    let answer = |commit: &str| format!(r#"{{"sha":"{commit}","siblings":[{{"rfilename":"a"}}]}}"#);
    let mut pinned = conversation(&format!("hf://o/n@{COMMIT}"));
    pinned.answered(&head(200, &[]), answer(&other).as_bytes());
    let Step::Failed(failure) = pinned.next() else { panic!("it was believed") };
    assert_eq!(failure.reason, Reason::DigestMismatch);
    assert!(failure.message.contains(COMMIT) && failure.message.contains(&other), "{failure}");
    let mut resumed = conversation("hf://o/n@main").pinned_to(COMMIT).unwrap();
    resumed.answered(&head(200, &[]), answer(&other).as_bytes());
    assert!(matches!(resumed.next(), Step::Failed(_)), "the rest would be of another commit");
    for (revision, commit) in [(COMMIT, COMMIT.to_uppercase()), ("main", other)] {
        let mut talk = conversation(&format!("hf://o/n@{revision}"));
        talk.answered(&head(200, &[]), answer(&commit).as_bytes());
        assert!(matches!(talk.next(), Step::Save(_)), "{revision} is {commit}");
    }
}

#[test]
fn an_unfinished_download_goes_on_at_its_commit() {
    let mut talk = source("hf://o/n")
        .conversation(&Selection::default(), &terms())
        .unwrap()
        .unwrap()
        .pinned_to(COMMIT)
        .unwrap();
    assert!(asked(&mut talk).url.path().ends_with(&format!("/revision/{COMMIT}")));
}

#[test]
fn sources_that_we_do_not_download_have_no_conversation() {
    for text in ["file:///x", "pvc://c/x"] {
        let talk = source(text).conversation(&Selection::default(), &terms());
        assert!(talk.unwrap().is_none(), "{text}");
    }
}

#[test]
fn two_different_revisions_are_refused() {
    let selection = Selection { revision: Some("dev".to_owned()), ..Selection::default() };
    let talk = |text| source(text).conversation(&selection, &terms());
    assert_eq!(talk("hf://o/n@main").unwrap_err().reason, Reason::BadSource);
    assert!(talk("hf://o/n@dev").is_ok());
    assert!(asked(&mut talk("hf://o/n").unwrap().unwrap()).url.path().ends_with("/dev"));
}

#[test]
fn sec_07_the_token_goes_to_the_hubs_own_origin_only() {
    for (endpoint, location, with_token) in [
        ("https://hub.test", "/api/models/new/name", true),
        ("https://hub.test", "https://hub.test:443/x", true),
        ("https://hub.test", "https://cdn.test/x?sig=1", false),
        ("https://hub.test", "//cdn.test/x", false),
        ("https://hub.test", "https://hub.test:8443/x", false),
        ("https://hub.test", "https://hub.test@evil.test/x", false),
        ("https://hub.test", "https://hub.test.evil.test/x", false),
        ("https://hub.test", "https:\\\\evil.test/x", false),
        ("http://127.0.0.1:9", "/x", true),
        ("http://127.0.0.1:9", "http://127.0.0.1:10/x", false),
        ("http://mirror.test", "/x", false),
    ] {
        let hub = Hub::at(endpoint).unwrap();
        let mut talk = source("hf://o/n")
            .conversation(&Selection::default(), &terms_with(hub))
            .unwrap()
            .unwrap();
        asked(&mut talk);
        talk.answered(&head(302, &[("Location", location)]), b"");
        let request = asked(&mut talk);
        let goes_along = request.authorization == Authorization::HubToken;
        assert_eq!(goes_along, with_token, "{endpoint} to {location}");
    }
}

#[test]
fn sec_07_a_redirect_from_https_to_http_is_not_followed() {
    let mut talk = conversation("hf://o/n");
    asked(&mut talk);
    let failure = failure(&mut talk, &head(302, &[("location", "http://hub.test/x")]));
    assert_eq!(failure.reason, Reason::DownloadFailed);
    assert!(failure.message.contains("plain http"), "{failure}");
}

#[test]
fn sec_07_a_signed_address_is_not_shown() {
    let mut talk = conversation("hf://o/n");
    talk.answered(&head(302, &[("location", "https://cdn.test/x?Signature=secret")]), b"");
    assert!(!format!("{:?}", asked(&mut talk)).contains("secret"));
}

#[test]
fn refusals_say_what_to_do() {
    for (status, code, reason, wanted) in [
        (401, "GatedRepo", Reason::GatedRepository, "accept its terms"),
        (403, "GatedRepo", Reason::GatedRepository, "HF_TOKEN"),
        (401, "RepoNotFound", Reason::BadSource, "does not exist, or is private"),
        (404, "RevisionNotFound", Reason::BadSource, "no revision `main`"),
        (404, "", Reason::BadSource, "check the source"),
        (400, "", Reason::DownloadFailed, "answered 400"),
        (302, "", Reason::DownloadFailed, "without saying where"),
    ] {
        let mut talk = conversation("hf://o/n");
        let failure = failure(&mut talk, &head(status, &[("X-Error-Code", code)]));
        assert_eq!(failure.reason, reason, "{status} {code}");
        assert!(failure.message.contains(wanted), "{status} {code}: {failure}");
    }
}

#[test]
fn what_may_pass_is_tried_again_after_the_time_that_was_asked_for() {
    for (status, retry_after, waits) in [
        (429, Some("7"), [7_000, 7_000]),
        (503, Some("99999"), [300_000, 300_000]),
        (500, None, [500, 1_000]),
        (408, Some("Wed, 21 Oct 2026 07:28:00 GMT"), [500, 1_000]),
    ] {
        let mut talk = conversation("hf://o/n");
        let headers = retry_after.map(|value| ("retry-after", value));
        for wait in waits {
            asked(&mut talk);
            talk.answered(&head(status, headers.as_slice()), b"");
            let Step::Wait(waited, _) = talk.next() else { panic!("{status}") };
            assert_eq!(waited, Duration::from_millis(wait), "{status}");
        }
        asked(&mut talk);
        talk.answered(&head(status, &[]), b"");
        let Step::Failed(failure) = talk.next() else { panic!("{status}") };
        assert_eq!(failure.reason, Reason::DownloadFailed);
    }
}

#[test]
fn a_circle_of_redirects_and_a_wrong_list_come_to_an_end() {
    for (status, body) in [
        (302, ""),
        (200, "<html>"),
        (200, r#"{"sha":"../x","siblings":[]}"#),
        (200, r#"{"siblings":[{"rfilename":"../../etc/passwd"}]}"#),
    ] {
        let mut talk = conversation("hf://o/n");
        let mut steps = 0;
        let failure = loop {
            steps += 1;
            assert!(steps < 100, "{status} {body}: no end");
            match talk.next() {
                Step::Ask(_) => {
                    talk.answered(&head(status, &[("location", "/round")]), body.as_bytes());
                }
                Step::Wait(..) => {}
                Step::Failed(failure) => break failure,
                Step::Save(plan) => panic!("{plan:?}"),
            }
        };
        assert_eq!(failure.reason, Reason::DownloadFailed, "{status} {body}");
    }
}

#[test]
fn an_endpoint_that_cannot_be_a_hub_is_refused() {
    for endpoint in ["hub.test", "ftp://hub.test", "https://me:pw@hub.test", "https://h.test/?x"] {
        assert!(Hub::at(endpoint).is_err(), "{endpoint}");
    }
    let mirror = Hub::at("https://mirror.test/hf/").unwrap();
    let mut talk = source("hf://o/n")
        .conversation(&Selection::default(), &terms_with(mirror))
        .unwrap()
        .unwrap();
    assert!(asked(&mut talk).url.as_str().starts_with("https://mirror.test/hf/api/models/o/n/"));
}
