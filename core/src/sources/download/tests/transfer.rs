//! Fetching one file: ranges, changed files, wrong lengths, digests, and that all of it ends.

use url::Url;

use super::super::site::Site;
use super::super::{
    Authorization, Body, Digest, Head, Purpose, RemoteFile, Transfer, TransferStep,
};
use super::{COMMIT, head, hub, patience};
use crate::activation::Reason;
use crate::sources::RelativePath;

fn transfer(size: Option<u64>, have: u64) -> Transfer {
    let file = RemoteFile {
        path: RelativePath::parse("model.bin").unwrap(),
        size,
        digest: Some(Digest::Sha256("ab".repeat(32))),
        url: Url::parse("https://hub.test/o/n/resolve/main/model.bin").unwrap(),
    };
    Transfer::new(file, named(), Site::Hub(hub()), &patience(), have)
}

/// The range and the condition that are asked for next, after any wait.
fn asked(transfer: &mut Transfer) -> (Option<String>, Option<String>) {
    loop {
        match transfer.next() {
            TransferStep::Wait(..) => {}
            TransferStep::Ask(request) => {
                assert_eq!(request.purpose, Purpose::File);
                let header = |name| {
                    let found = request.headers.iter().find(|(known, _)| *known == name);
                    found.map(|(_, value)| value.clone())
                };
                return (header("range"), header("if-range"));
            }
            step => panic!("{step:?}"),
        }
    }
}

fn named() -> (String, String) {
    ("o/n".to_owned(), "main".to_owned())
}

/// Compares with what `asked` gives.
fn wants(range: Option<&str>, condition: Option<&str>) -> (Option<String>, Option<String>) {
    (range.map(ToOwned::to_owned), condition.map(ToOwned::to_owned))
}

#[test]
fn a_file_is_fetched_checked_and_published() {
    let mut transfer = transfer(Some(10), 0);
    assert_eq!(asked(&mut transfer), (None, None));
    let answer = head(200, &[("content-length", "10"), ("etag", "\"t\"")]);
    assert_eq!(transfer.head(&answer), Body::Keep { at: 0 });
    assert!(transfer.received(10));
    transfer.ended();
    assert_eq!(transfer.next(), TransferStep::Verify);
    transfer.verified(true);
    assert_eq!(transfer.next(), TransferStep::Publish);
}

#[test]
fn what_broke_off_goes_on_where_it_stopped_if_the_file_is_the_same() {
    let mut transfer = transfer(Some(10), 0);
    asked(&mut transfer);
    transfer.head(&head(200, &[("etag", "\"t\"")]));
    assert!(transfer.received(4));
    transfer.broken("cut");
    assert_eq!(asked(&mut transfer), wants(Some("bytes=4-"), Some("\"t\"")));
    let answer = head(206, &[("content-range", "bytes 4-9/10"), ("etag", "\"t\"")]);
    assert_eq!(transfer.head(&answer), Body::Keep { at: 4 });
    assert!(transfer.received(6));
    transfer.ended();
    assert_eq!(transfer.next(), TransferStep::Verify);
}

#[test]
fn a_partial_file_of_an_earlier_process_is_gone_on_with() {
    assert_eq!(asked(&mut transfer(Some(10), 4)), wants(Some("bytes=4-"), None));
    assert_eq!(transfer(Some(10), 10).next(), TransferStep::Verify, "nothing is left to ask");
    assert_eq!(asked(&mut transfer(Some(10), 11)), (None, None), "too much is worth nothing");
    assert_eq!(transfer(Some(0), 0).next(), TransferStep::Verify, "nothing is a whole file, too");
}

#[test]
fn a_small_file_is_gone_on_with_under_its_git_name() {
    let file = RemoteFile {
        path: RelativePath::parse("config.json").unwrap(),
        size: Some(9),
        digest: Some(Digest::GitBlob(COMMIT.to_owned())),
        url: Url::parse("https://hub.test/c").unwrap(),
    };
    let mut transfer = Transfer::new(file, named(), Site::Hub(hub()), &patience(), 3);
    assert_eq!(asked(&mut transfer), wants(Some("bytes=3-"), Some(&format!("\"{COMMIT}\""))));
}

#[test]
fn answers_that_do_not_fit_what_is_here_start_from_nothing() {
    for (answer, why) in [
        (head(206, &[]), "no range"),
        (head(206, &[("content-range", "bytes 0-9/10")]), "another part"),
        (head(206, &[("content-range", "bytes 4-9/11")]), "another length"),
        (head(206, &[("content-range", "bytes 4-9/10"), ("etag", "\"new\"")]), "changed"),
        (head(416, &[("content-range", "bytes */3")]), "shorter"),
        (head(200, &[("content-encoding", "gzip")]), "compressed"),
    ] {
        let mut transfer = transfer(Some(10), 0);
        asked(&mut transfer);
        transfer.head(&head(200, &[("etag", "\"old\"")]));
        assert!(transfer.received(4));
        transfer.broken("cut");
        asked(&mut transfer);
        assert_eq!(transfer.head(&answer), Body::Drop, "{why}");
        assert_eq!(asked(&mut transfer), (None, None), "{why}");
        assert_eq!(transfer.have(), 0, "{why}");
    }
}

#[test]
fn a_server_that_ignores_ranges_sends_the_file_from_its_beginning() {
    let mut transfer = transfer(Some(10), 4);
    asked(&mut transfer);
    assert_eq!(transfer.head(&head(200, &[("content-length", "10")])), Body::Keep { at: 0 });
    assert!(transfer.received(10));
    transfer.ended();
    assert_eq!(transfer.next(), TransferStep::Verify);
}

#[test]
fn a_page_in_place_of_the_file_costs_nothing_that_is_here() {
    let mut transfer = transfer(Some(10), 4);
    asked(&mut transfer);
    assert_eq!(transfer.head(&head(200, &[("content-length", "99")])), Body::Drop);
    assert_eq!(asked(&mut transfer), wants(Some("bytes=4-"), None));
}

#[test]
fn a_gated_file_and_one_that_is_gone_are_told_at_once() {
    for (status, code, reason) in [
        (401, "GatedRepo", Reason::GatedRepository),
        (403, "GatedRepo", Reason::GatedRepository),
        (404, "EntryNotFound", Reason::BadSource),
    ] {
        let mut transfer = transfer(Some(10), 0);
        asked(&mut transfer);
        transfer.head(&head(status, &[("x-error-code", code)]));
        let TransferStep::Failed(failure) = transfer.next() else { panic!("{status}") };
        assert_eq!(failure.reason, reason, "{status}");
    }
}

#[test]
fn an_expired_signature_is_renewed_by_asking_the_hub_again() {
    let mut transfer = transfer(Some(10), 0);
    asked(&mut transfer);
    let moved = head(302, &[("location", "https://cdn.test/x?sig=1")]);
    assert_eq!(transfer.head(&moved), Body::Drop);
    let TransferStep::Ask(request) = transfer.next() else { panic!() };
    let seen = (request.url.host_str(), request.authorization);
    assert_eq!(seen, (Some("cdn.test"), Authorization::Nothing));
    transfer.head(&head(403, &[]));
    assert!(matches!(transfer.next(), TransferStep::Wait(..)));
    let TransferStep::Ask(request) = transfer.next() else { panic!() };
    let seen = (request.url.host_str(), request.authorization);
    assert_eq!(seen, (Some("hub.test"), Authorization::HubToken));
}

#[test]
fn the_length_may_be_unknown_until_the_server_says_it() {
    let mut whole = transfer(None, 0);
    asked(&mut whole);
    whole.head(&head(200, &[("content-length", "10")]));
    assert!(whole.received(4));
    whole.ended();
    assert_eq!(
        asked(&mut whole),
        wants(Some("bytes=4-"), None),
        "an end before the length is a cut"
    );

    let mut finished = transfer(None, 10);
    asked(&mut finished);
    finished.head(&head(416, &[("content-range", "bytes */10")]));
    assert_eq!(finished.next(), TransferStep::Verify, "it was whole already");
}

#[test]
fn load_05_a_wrong_digest_starts_from_nothing_once_and_then_fails() {
    let mut transfer = transfer(Some(10), 10);
    assert_eq!(transfer.next(), TransferStep::Verify);
    transfer.verified(false);
    assert_eq!(asked(&mut transfer), (None, None));
    transfer.head(&head(200, &[]));
    assert!(transfer.received(10));
    transfer.ended();
    transfer.verified(false);
    let TransferStep::Failed(failure) = transfer.next() else { panic!() };
    assert_eq!(failure.reason, Reason::DigestMismatch);
}

#[test]
fn every_server_that_goes_on_being_wrong_is_given_up() {
    let faults: [(&str, Head, u64); 6] = [
        ("empty bodies", head(200, &[]), 0),
        ("too long", head(200, &[]), 11),
        ("wrong length", head(200, &[("content-length", "11")]), 0),
        ("part of nothing", head(206, &[("content-range", "bytes 0-9/10")]), 0),
        ("busy", head(503, &[("retry-after", "0")]), 0),
        ("circle", head(302, &[("location", "/o/n/resolve/main/model.bin")]), 0),
    ];
    for (fault, answer, sent) in faults {
        let mut transfer = transfer(Some(10), 0);
        let mut steps = 0;
        let failure = loop {
            steps += 1;
            assert!(steps < 100, "{fault}: no end");
            match transfer.next() {
                TransferStep::Ask(_) => {
                    let keeps = matches!(transfer.head(&answer), Body::Keep { .. });
                    if keeps && transfer.received(sent) {
                        transfer.ended();
                    }
                }
                TransferStep::Wait(..) => {}
                TransferStep::Failed(failure) => break failure,
                step => panic!("{fault}: {step:?}"),
            }
        };
        assert_eq!(failure.reason, Reason::DownloadFailed, "{fault}: {failure}");
    }
}

#[test]
fn progress_makes_patience_anew() {
    let mut transfer = transfer(Some(100), 0);
    for round in 0..50_u64 {
        asked(&mut transfer);
        let answer = match round {
            0 => head(200, &[]),
            at => head(206, &[("content-range", &format!("bytes {at}-99/100"))]),
        };
        assert_eq!(transfer.head(&answer), Body::Keep { at: round });
        assert!(transfer.received(1));
        transfer.broken("cut");
    }
    assert_eq!(transfer.have(), 50);
}
