//! Being let in by a registry: what is shown to whom, and that nothing is shown to anybody else (SEC-07).

use serde_json::json;
use url::Url;

use super::{asked, failure, head, manifest, talk, titled};
use crate::activation::Reason;
use crate::sources::RelativePath;
use crate::sources::download::{
    Authorization, Body, Conversation, Digest, RemoteFile, Session, Step, Transfer, TransferStep,
};

const BEARER: &str =
    r#"Bearer realm="https://auth.test/token",service="reg",scope="repository:a:pull""#;
const SERVICE: &str = "https://auth.test/token?service=reg&scope=repository%3Aa%3Apull";

fn by(token: &str) -> Authorization {
    Authorization::Session(Session::new(token.to_owned()))
}

fn challenge(talk: &mut Conversation, challenge: &str) {
    talk.answered(&head(401, &[("WWW-Authenticate", challenge)]), b"");
}

#[test]
fn a_token_is_got_with_the_login_and_shown_to_the_registry_alone() {
    let mut talk = talk("oci://reg.test/a").with_login(true);
    asked(&mut talk);
    challenge(&mut talk, BEARER);
    let request = asked(&mut talk);
    assert_eq!((request.url.as_str(), request.authorization), (SERVICE, Authorization::Login));
    talk.answered(&head(200, &[]), br#"{"token":"t1","expires_in":60}"#);
    let request = asked(&mut talk);
    assert_eq!(request.url.as_str(), "https://reg.test/v2/a/manifests/latest");
    assert_eq!(request.authorization, by("t1"));
    assert!(!format!("{request:?}").contains("t1"), "it is never shown");
    for (location, goes_along) in [
        ("https://reg.test/other", by("t1")),
        ("https://reg.test:8443/x", Authorization::Nothing),
        ("https://cdn.test/x", Authorization::Nothing),
    ] {
        let mut talk = talk.clone();
        talk.answered(&head(307, &[("location", location)]), b"");
        assert_eq!(asked(&mut talk).authorization, goes_along, "{location}");
    }
}

#[test]
fn a_registry_that_wants_the_login_itself_gets_it() {
    let mut talk = talk("oci://reg.test/a").with_login(true);
    asked(&mut talk);
    challenge(&mut talk, "Basic realm=x");
    let request = asked(&mut talk);
    assert_eq!(request.url.as_str(), "https://reg.test/v2/a/manifests/latest");
    assert_eq!(request.authorization, Authorization::Login);
    challenge(&mut talk, "Basic realm=x");
    let refused = failure(&mut talk);
    assert_eq!(refused.reason, Reason::GatedRepository);
    assert!(refused.message.contains("the login for reg.test may pull it"), "{refused}");
}

#[test]
fn without_a_login_it_is_said_how_one_is_given() {
    for (challenges, token) in [("Basic realm=x", None), (BEARER, Some(403)), ("", None)] {
        let mut talk = talk("oci://reg.test/a");
        asked(&mut talk);
        challenge(&mut talk, challenges);
        if let Some(status) = token {
            asked(&mut talk);
            talk.answered(&head(status, &[]), b"");
        }
        let refused = failure(&mut talk);
        assert_eq!(refused.reason, Reason::GatedRepository, "{challenges}");
        assert!(refused.message.contains("docker login reg.test"), "{refused}");
        assert!(refused.message.contains("flexinfer.ai/image-pull-secrets"), "{refused}");
    }
}

#[test]
fn sec_07_no_login_goes_to_a_service_over_plain_http() {
    for (source, realm, goes) in [
        ("oci://reg.test/a", "http://auth.test/token", false),
        ("oci://reg.test/a", "ftp://auth.test/token", false),
        ("oci://reg.test/a", "/token", false),
        ("oci://reg.test/a", "https://me:pw@auth.test/token", false),
        ("oci://reg.test/a", "https://auth.test/token", true),
        ("oci://localhost:5000/a", "http://localhost:5001/token", true),
        ("oci://localhost:5000/a", "http://evil.test/token", false),
    ] {
        let mut talk = talk(source).with_login(true);
        asked(&mut talk);
        challenge(&mut talk, &format!("Bearer realm={realm}"));
        match talk.next() {
            Step::Ask(request) => {
                assert!(goes, "{realm}");
                let scope = request.url.query_pairs().find(|(name, _)| name == "scope").unwrap().1;
                assert_eq!(scope, "repository:a:pull", "what was not said is said by us");
            }
            Step::Failed(failure) => {
                assert!(!goes, "{realm}: {failure}");
                assert_eq!(failure.reason, Reason::GatedRepository, "{realm}");
            }
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn sec_07_a_challenge_of_the_storage_is_not_answered() {
    let mut talk = talk("oci://reg.test/a").with_login(true);
    asked(&mut talk);
    talk.answered(&head(307, &[("location", "https://cdn.test/x")]), b"");
    asked(&mut talk);
    challenge(&mut talk, r#"Bearer realm="https://evil.test/token""#);
    let request = asked(&mut talk);
    assert_eq!(request.url.host_str(), Some("reg.test"), "it is asked for from the beginning");
}

#[test]
fn a_registry_that_goes_on_asking_is_given_up() {
    let mut talk = talk("oci://reg.test/a").with_login(true);
    for _ in 0..2 {
        asked(&mut talk);
        challenge(&mut talk, BEARER);
        asked(&mut talk);
        talk.answered(&head(200, &[]), br#"{"access_token":"t"}"#);
    }
    asked(&mut talk);
    challenge(&mut talk, BEARER);
    assert_eq!(failure(&mut talk).reason, Reason::GatedRepository);
}

#[test]
fn a_token_service_may_be_busy_or_broken() {
    for (status, body) in [
        (503, ""),
        (429, ""),
        (200, "<html>"),
        (200, "{}"),
        (200, r#"{"token":""}"#),
        (200, r#"{"token":"a\nb"}"#),
    ] {
        let mut talk = talk("oci://reg.test/a");
        for _ in 0..3 {
            asked(&mut talk);
            challenge(&mut talk, BEARER);
            asked(&mut talk);
            talk.answered(&head(status, &[]), body.as_bytes());
        }
        let failure = failure(&mut talk);
        assert_eq!(failure.reason, Reason::DownloadFailed, "{status} {body}: {failure}");
    }
    let mut talk = talk("oci://reg.test/a");
    asked(&mut talk);
    challenge(&mut talk, BEARER);
    asked(&mut talk);
    talk.answered(&head(302, &[("location", "https://evil.test/")]), b"");
    assert_eq!(
        failure(&mut talk).reason,
        Reason::DownloadFailed,
        "nobody is followed with a login"
    );
}

/// The transfer of the one blob of an artifact, with the token `t1`.
fn transfer() -> Transfer {
    let mut talk = talk("oci://reg.test/a").with_login(true);
    asked(&mut talk);
    challenge(&mut talk, BEARER);
    asked(&mut talk);
    talk.answered(&head(200, &[]), br#"{"token":"t1"}"#);
    talk.answered(&head(200, &[]), &manifest(&json!([titled("01", "x")])));
    let Step::Save(plan) = talk.next() else { panic!() };
    talk.transfer(plan.files[0].clone(), 0)
}

fn step(transfer: &mut Transfer) -> (String, Authorization) {
    loop {
        match transfer.next() {
            TransferStep::Wait(..) => {}
            TransferStep::Ask(request) => return (request.url.to_string(), request.authorization),
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn a_token_that_runs_out_in_the_middle_is_renewed() {
    let mut transfer = transfer();
    let (blob, shown) = step(&mut transfer);
    assert!(blob.contains("/v2/a/blobs/sha256:"), "{blob}");
    assert_eq!(shown, by("t1"));
    assert_eq!(transfer.head(&head(200, &[("content-length", "10")])), Body::Keep { at: 0 });
    assert!(transfer.received(4));
    transfer.broken("cut");
    let TransferStep::Wait(..) = transfer.next() else { panic!() };
    let TransferStep::Ask(request) = transfer.next() else { panic!() };
    let range = request.headers.iter().find(|(name, _)| *name == "range");
    assert_eq!(range.unwrap().1, "bytes=4-9", "some registries want the end said");
    let expired = head(401, &[("www-authenticate", BEARER)]);
    assert_eq!(transfer.head(&expired), Body::Drop);
    assert_eq!(step(&mut transfer), (SERVICE.to_owned(), Authorization::Login));
    assert_eq!(transfer.head(&head(200, &[])), Body::Read);
    transfer.told(br#"{"token":"t2"}"#);
    assert_eq!(step(&mut transfer), (blob, by("t2")));
    let rest = head(206, &[("content-range", "bytes 4-9/10")]);
    assert_eq!(transfer.head(&rest), Body::Keep { at: 4 }, "what has come is kept");
}

#[test]
fn sec_07_a_blob_in_the_storage_is_asked_for_without_anything() {
    let mut transfer = transfer();
    step(&mut transfer);
    let moved = head(307, &[("location", "https://cdn.test/blob?sig=1")]);
    assert_eq!(transfer.head(&moved), Body::Drop);
    let (url, shown) = step(&mut transfer);
    assert!(url.starts_with("https://cdn.test/"), "{url}");
    assert_eq!(shown, Authorization::Nothing);
}

#[test]
fn a_blob_that_we_may_not_have_is_given_up() {
    let mut transfer = transfer();
    for _ in 0..2 {
        step(&mut transfer);
        transfer.head(&head(401, &[("www-authenticate", BEARER)]));
        step(&mut transfer);
        transfer.head(&head(200, &[]));
        transfer.told(br#"{"token":"t2"}"#);
    }
    step(&mut transfer);
    transfer.head(&head(401, &[("www-authenticate", BEARER)]));
    let TransferStep::Failed(failure) = transfer.next() else { panic!() };
    assert_eq!(failure.reason, Reason::GatedRepository);
}

#[test]
fn a_blob_is_known_by_its_digest_alone() {
    let file = RemoteFile {
        path: RelativePath::parse("x").unwrap(),
        size: Some(1),
        digest: Some(Digest::Sha256("ab".repeat(32))),
        url: Url::parse("https://reg.test/v2/a/blobs/x").unwrap(),
    };
    let mut transfer = talk("oci://reg.test/a").transfer(file, 1);
    assert_eq!(transfer.next(), TransferStep::Verify);
    transfer.verified(false);
    step(&mut transfer);
    transfer.head(&head(200, &[]));
    assert!(transfer.received(1));
    transfer.ended();
    transfer.verified(false);
    let TransferStep::Failed(failure) = transfer.next() else { panic!() };
    assert_eq!(failure.reason, Reason::DigestMismatch);
}
