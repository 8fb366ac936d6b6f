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

/// An artifact with the file `config.json`, which is `{}`, for who shows the login.
fn registry(request: &Recorded) -> Vec<Action> {
    let manifest = r#"{"schemaVersion":2,"layers":[{"size":2,"digest":
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "annotations":{"org.opencontainers.image.title":"config.json"}}]}"#;
    if request.head.header("authorization") != Some("Basic bWU6c2VjcmV0") {
        return vec![Action::Write(answer(401, &[("WWW-Authenticate", "Basic realm=x")], b""))];
    }
    let body = if request.head.target().contains("/manifests/") { manifest } else { "{}" };
    vec![Action::Write(answer(200, &[], body.as_bytes()))]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_is_fetched_with_the_login_that_docker_keeps() {
    let registry = Origin::start(registry).await.unwrap();
    let host = registry.url().replace("http://", "");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("weights");
    let fetch = |more: &[&str]| {
        let mut command = program();
        command.args(["fetch", &format!("oras://{host}/org/name:v1"), "--to"]).arg(&to).args(more);
        command.env("DOCKER_CONFIG", folder.path());
        command.output().unwrap()
    };
    assert_eq!(fetch(&[]).status.code(), Some(77), "nobody is logged in");
    let logins = format!(r#"{{"auths":{{"{host}":{{"auth":"bWU6c2VjcmV0"}}}}}}"#);
    fs::write(folder.path().join("config.json"), &logins).unwrap();
    let elsewhere = fetch(&["--registry-logins", "/nowhere/config.json"]);
    assert_eq!(elsewhere.status.code(), Some(77), "another file was named, which is not there");
    let output = fetch(&[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), to.to_str().unwrap());
    assert_eq!(fs::read(to.join("config.json")).unwrap(), b"{}");
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
    fs::remove_file(&missing).unwrap();
    let other = nowhere.path().join("README.md");
    fs::write(&other, "text").unwrap();
    for place in [other.as_path(), nowhere.path()] {
        let output = program().arg("check").arg(place).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(65), "{said}");
        let named = said.contains(place.to_str().unwrap());
        assert!(said.contains("nothing to check") && named, "{said}");
    }
    // Of a format that nobody knows there may be weights, also in folders below.
    for name in ["config.json", "vectors.txt", "unet/model.bin"] {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, "weights").unwrap();
        let output = program().arg("check").arg(folder.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains("can be checked"), "{name}: {said}");
    }
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

#[test]
fn nothing_is_fetched_to_a_folder_of_the_systems() {
    let mut fetch = program();
    // Nobody could make it, whatever is decided.
    fetch.args(["fetch", "HF://org/name", "--to", "/proc/weights"]);
    let output = fetch.env("HF_ENDPOINT", "http://127.0.0.1:9").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("/proc/weights is no place for weights"), "{said}");
}
