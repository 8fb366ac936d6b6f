//! `fetch` as a program, against a hub on loopback.

use std::fs;

use flexinfer_testkit::origin::{Action, Origin, Recorded, answer};

use crate::world::program;

const LIST: &str = r#"{"sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","siblings":[
    {"rfilename":"config.json","size":2,"blobId":"9e26dfeeb6e641a33dae4961196235bdb965b21b"},
    {"rfilename":"notes.md","size":2,"blobId":"9e26dfeeb6e641a33dae4961196235bdb965b21b"}]}"#;

fn hub(request: &Recorded) -> Vec<Action> {
    let target = request.head.target();
    let body = if target.starts_with("/api/models/") { LIST } else { "{}" };
    vec![Action::Write(answer(200, &[], body.as_bytes()))]
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_fetched_once_and_the_path_is_printed() {
    let hub = Origin::start(hub).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("weights");
    let url = hub.url();
    let fetch = move |to: &std::path::Path| {
        let mut command = program();
        command.args(["fetch", "HF://org/name", "--ignore", "*.md", "--to"]).arg(to);
        command.env("HF_ENDPOINT", &url).env("HF_TOKEN", "secret").output().unwrap()
    };
    let output = fetch(&to);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), to.to_str().unwrap());
    assert_eq!(fs::read(to.join("config.json")).unwrap(), b"{}");
    assert!(!to.join("notes.md").exists());
    let asked = hub.requests();
    assert!(
        asked
            .iter()
            .all(|request| { request.head.header("authorization") == Some("Bearer secret") })
    );

    assert!(fetch(&to).status.success());
    assert_eq!(hub.requests().len(), asked.len(), "what is whole is not asked for again");
}

#[test]
fn what_is_not_downloaded_is_refused_with_the_reason() {
    let output =
        program().args(["fetch", "file:///models/x", "--to", "/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(65));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("file:///models/x"), "{said}");
    let output = program().args(["fetch", "HF://org", "--to", "/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn why_it_failed_is_told_by_the_exit_status() {
    let nowhere = tempfile::tempdir().unwrap();
    let missing = nowhere.path().join("weights.gguf");
    let output = program().arg("check").arg(&missing).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(65), "{said}");
    assert!(said.contains("does not exist"), "{said}");
    fs::write(&missing, "no GGUF").unwrap();
    assert_eq!(program().arg("check").arg(&missing).output().unwrap().status.code(), Some(65));
    let other = nowhere.path().join("notes.txt");
    fs::write(&other, "text").unwrap();
    assert!(program().arg("check").arg(&other).output().unwrap().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn k8s_20_a_gated_repository_ends_with_an_exit_status_of_its_own() {
    let gated =
        |_: &Recorded| vec![Action::Write(answer(403, &[("x-error-code", "GatedRepo")], b""))];
    let hub = Origin::start(gated).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["fetch", "HF://org/name", "--to"]).arg(folder.path().join("weights"));
    let output = command.env("HF_ENDPOINT", hub.url()).output().unwrap();
    assert_eq!(output.status.code(), Some(77), "{}", String::from_utf8_lossy(&output.stderr));
}
