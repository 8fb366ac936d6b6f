//! From a source to the files of an artifact: by tag, by digest, by an index, and nothing that does not fit.

use serde_json::{Value, json};

use super::{OTHER, asked, digest_of, failure, head, layer, manifest, talk, talk_about, titled};
use crate::activation::Reason;
use crate::sources::RelativePath;
use crate::sources::download::{Authorization, Conversation, Digest, Selection, Step};

/// The paths and the addresses of the plan that the talk has come to.
fn planned(talk: &mut Conversation) -> Vec<(String, String)> {
    let Step::Save(plan) = talk.next() else { panic!("{:?}", talk.next()) };
    plan.files.iter().map(|file| (file.path.to_string(), file.url.to_string())).collect()
}

fn refused(source: &str, body: &[u8]) -> (Reason, String) {
    let mut talk = talk(source);
    asked(&mut talk);
    talk.answered(&head(200, &[]), body);
    let failure = failure(&mut talk);
    (failure.reason, failure.message)
}

#[test]
fn a_tag_is_asked_for_and_its_files_are_pinned_by_the_manifests_digest() {
    let mut talk = talk("oci://reg.test:5000/org/name:v1");
    assert_eq!(talk.identity(), "oci://reg.test:5000/org/name:v1");
    let request = asked(&mut talk);
    assert_eq!(request.url.as_str(), "https://reg.test:5000/v2/org/name/manifests/v1");
    assert_eq!(request.authorization, Authorization::Nothing);
    assert!(request.headers[0].1.contains("application/vnd.oci.image.index.v1+json"));
    let body = manifest(&json!([titled("01", "model.gguf"), titled("02", "sub/tokenizer.json")]));
    talk.answered(&head(200, &[("Docker-Content-Digest", &digest_of(&body))]), &body);
    let Step::Save(plan) = talk.next() else { panic!() };
    assert_eq!(plan.commit, Some(digest_of(&body)));
    assert_eq!(plan.size(), 20);
    let first = &plan.files[0];
    let hex = format!("{}01", "0".repeat(62));
    assert_eq!(first.path.as_str(), "model.gguf");
    assert_eq!(first.digest, Some(Digest::Sha256(hex.clone())));
    let blob = format!("https://reg.test:5000/v2/org/name/blobs/sha256:{hex}");
    assert_eq!(first.url.as_str(), blob);
}

#[test]
fn an_unfinished_download_goes_on_with_the_same_manifest() {
    let mut talk = talk("oci://reg.test/org/name").pinned_to(OTHER).unwrap();
    let url = asked(&mut talk).url;
    assert_eq!(url.as_str(), format!("https://reg.test/v2/org/name/manifests/{OTHER}"));
    talk.answered(&head(200, &[]), &manifest(&json!([titled("01", "x")])));
    assert_eq!(failure(&mut talk).reason, Reason::DigestMismatch);
}

#[test]
fn only_registries_on_this_machine_and_those_named_are_asked_over_plain_http() {
    let mut terms = super::terms();
    terms.insecure_registries = vec!["reg.test:5000".to_owned(), "plain.test".to_owned()];
    for (registry, begins) in [
        ("localhost:5000", "http://localhost:5000/v2/"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000/v2/"),
        ("[::1]:5000", "http://[::1]:5000/v2/"),
        ("reg.test:5000", "http://reg.test:5000/v2/"),
        ("plain.test", "http://plain.test/v2/"),
        ("reg.test:5001", "https://reg.test:5001/v2/"),
        ("reg.test", "https://reg.test/v2/"),
        ("localhost.test", "https://localhost.test/v2/"),
        ("docker.io", "https://registry-1.docker.io/v2/library/"),
    ] {
        let source = format!("oci://{registry}/name").parse::<crate::sources::Source>().unwrap();
        let mut talk = source.conversation(&Selection::default(), &terms).unwrap().unwrap();
        let url = asked(&mut talk).url;
        assert!(url.as_str().starts_with(begins), "{registry}: {url}");
    }
}

#[test]
fn sec_06_a_manifest_that_is_not_what_was_asked_for_is_refused() {
    let right = manifest(&json!([titled("01", "x")]));
    let mut wrong = right.clone();
    wrong[2] ^= 1;
    let source = format!("oci://reg.test/a@{}", digest_of(&right));
    let mut whole = talk(&source);
    whole.answered(&head(200, &[]), &right);
    assert_eq!(planned(&mut whole).len(), 1);
    for (what, body) in [
        ("another byte", wrong.as_slice()),
        ("another manifest", &manifest(&json!([titled("02", "x")]))),
        ("cut", &right[..right.len() - 1]),
        ("a page", b"<html>"),
    ] {
        let (reason, message) = refused(&source, body);
        assert_eq!(reason, Reason::DigestMismatch, "{what}: {message}");
    }
}

#[test]
fn sec_06_a_tags_manifest_that_is_not_what_its_registry_says_is_asked_for_again() {
    let body = manifest(&json!([titled("01", "x")]));
    let mut talk = talk("oci://reg.test/a");
    asked(&mut talk);
    talk.answered(&head(200, &[("docker-content-digest", OTHER)]), &body);
    assert!(matches!(talk.next(), Step::Wait(..)));
    asked(&mut talk);
    talk.answered(&head(200, &[("docker-content-digest", &digest_of(&body))]), &body);
    assert_eq!(planned(&mut talk).len(), 1);
}

fn index(manifests: &[(&[u8], Value)]) -> Vec<u8> {
    let entries = manifests.iter().map(|(body, more)| {
        let mut entry = json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest_of(body), "size": body.len(),
        });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    });
    let entries = entries.collect::<Vec<_>>();
    json!({ "schemaVersion": 2, "manifests": entries }).to_string().into_bytes()
}

#[test]
fn sec_06_an_index_with_two_matching_platforms_gives_its_first() {
    let [first, second] = ["01", "02"].map(|digits| manifest(&json!([titled(digits, "x")])));
    let on =
        |architecture: &str| json!({ "platform": { "os": "linux", "architecture": architecture } });
    let here = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let attests = json!({
        "platform": { "os": "unknown", "architecture": "unknown" },
        "annotations": { "vnd.docker.reference.type": "attestation-manifest" },
    });
    for (entries, wanted) in [
        (vec![(&first, on(here)), (&second, on(here))], &first),
        (vec![(&first, on("riscv64")), (&second, on(here))], &second),
        (vec![(&first, on("riscv64")), (&second, json!({}))], &second),
        (vec![(&first, attests), (&second, on("riscv64"))], &second),
    ] {
        let entries = entries.into_iter().map(|(body, more)| (body.as_slice(), more));
        let body = index(&entries.collect::<Vec<_>>());
        let mut talk = talk("oci://reg.test/a:v1");
        asked(&mut talk);
        talk.answered(&head(200, &[]), &body);
        let request = asked(&mut talk);
        assert!(request.url.path().ends_with(&digest_of(wanted)), "{}", request.url);
        talk.answered(&head(200, &[]), wanted);
        let Step::Save(plan) = talk.next() else { panic!() };
        assert_eq!(plan.commit, Some(digest_of(&body)), "what was asked for is what is pinned");
    }
    let foreign = index(&[(&first, on("riscv64")), (&second, on("s390x"))]);
    let (reason, message) = refused("oci://reg.test/a", &foreign);
    assert_eq!(reason, Reason::BadSource);
    assert!(message.contains("linux/riscv64, linux/s390x"), "{message}");
}

#[test]
fn sec_06_the_manifest_that_an_index_names_is_compared_with_its_digest() {
    let [first, second] = ["01", "02"].map(|digits| manifest(&json!([titled(digits, "x")])));
    let mut talk = talk("oci://reg.test/a");
    asked(&mut talk);
    talk.answered(&head(200, &[]), &index(&[(&first, json!({}))]));
    asked(&mut talk);
    talk.answered(&head(200, &[]), &second);
    assert_eq!(failure(&mut talk).reason, Reason::DigestMismatch);
}

#[test]
fn an_index_of_indexes_comes_to_an_end() {
    let mut body = manifest(&json!([titled("01", "x")]));
    let mut bodies = vec![body.clone()];
    for _ in 0..9 {
        body = index(&[(&body, json!({}))]);
        bodies.push(body.clone());
    }
    let mut talk = talk("oci://reg.test/a");
    for body in bodies.iter().rev().take(4) {
        asked(&mut talk);
        talk.answered(&head(200, &[]), body);
    }
    assert_eq!(failure(&mut talk).reason, Reason::BadSource);
}

#[test]
fn a_file_is_chosen_as_of_a_repository() {
    let file = Some(RelativePath::parse("b.gguf").unwrap());
    let selection = Selection { file, ..Selection::default() };
    let body = manifest(&json!([titled("01", "a.gguf"), titled("02", "b.gguf")]));
    let mut one = talk_about("oci://reg.test/a", &selection);
    one.answered(&head(200, &[]), &body);
    let paths = planned(&mut one).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(paths, ["b.gguf"]);
    assert_eq!(one.model_path("/d".as_ref()).as_os_str(), "/d/b.gguf");
    let mut none = talk_about("oci://reg.test/a", &selection);
    none.answered(&head(200, &[]), &manifest(&json!([titled("01", "a.gguf")])));
    assert!(failure(&mut none).message.contains("nearest name there is `a.gguf`"));
    let revision = Selection { revision: Some("v2".to_owned()), ..Selection::default() };
    let source = "oci://reg.test/a:v1".parse::<crate::sources::Source>().unwrap();
    let error = source.conversation(&revision, &super::terms()).unwrap_err();
    assert!(error.message.contains("config.hfRevision"), "{error}");
}

#[test]
fn what_ollama_pulls_is_laid_out_under_names_of_its_own() {
    let mut talk = talk("ollama://llama3.2:1b");
    assert_eq!(talk.identity(), "ollama://registry.ollama.ai/library/llama3.2:1b");
    let url = asked(&mut talk).url;
    assert_eq!(url.as_str(), "https://registry.ollama.ai/v2/library/llama3.2/manifests/1b");
    let of =
        |digits, kind| layer(digits, &format!("application/vnd.ollama.image.{kind}"), &json!({}));
    let body = manifest(&json!([
        of("01", "model"),
        of("02", "projector"),
        of("03", "template"),
        of("04", "params"),
        of("05", "license"),
        of("06", "license"),
    ]));
    talk.answered(&head(200, &[]), &body);
    let paths = planned(&mut talk).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(
        paths,
        ["model.gguf", "mmproj.gguf", "template", "params.json", "license", "license-2"]
    );
    assert_eq!(talk.model_path("/d".as_ref()).as_os_str(), "/d/model.gguf");
}

#[test]
fn what_cannot_be_used_is_told_with_what_would_be() {
    let tar = "application/vnd.cncf.model.weight.v1.tar";
    let unpack =
        json!({ "org.opencontainers.image.title": "d", "io.deis.oras.content.unpack": "true" });
    for (layers, wanted) in [
        (json!([layer("01", tar, &json!({ "org.cncf.model.filepath": "x" }))]), "is an archive"),
        (json!([layer("01", "application/vnd.oci.image.layer.v1.tar+gzip", &unpack)]), "oras push"),
        (
            json!([layer("01", "application/vnd.docker.image.rootfs.diff.tar.gzip", &json!({}))]),
            "layer 1 is an archive",
        ),
        (json!([titled("01", "x"), layer("02", "text/plain", &json!({}))]), "layer 2 (text/plain)"),
        (json!([titled("01", "../x")]), "would leave its folder"),
        (json!([titled("01", "/etc/passwd")]), "would leave its folder"),
        (json!([titled("01", "x"), titled("02", "x")]), "two of its layers are called `x`"),
        (json!([]), "has no files"),
        (json!([layer("01", "application/vnd.oci.empty.v1+json", &json!({}))]), "has no files"),
        (json!([{ "digest": "md5:00", "size": 1 }]), "only sha256"),
        (json!([{ "digest": "sha256:../../x", "size": 1 }]), "only sha256"),
    ] {
        let (reason, message) = refused("oci://reg.test/a:v1", &manifest(&layers));
        assert_eq!(reason, Reason::BadSource, "{layers}: {message}");
        assert!(message.contains(wanted), "{layers}: {message}");
    }
    let old = json!({ "schemaVersion": 1, "fsLayers": [] }).to_string();
    assert!(refused("oci://reg.test/a", old.as_bytes()).1.contains("first version"));
    assert!(refused("oci://reg.test/a", b"{}").1.contains("neither layers nor manifests"));
}
