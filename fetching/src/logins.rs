//! Logins for registries: the files that `docker login`, podman and pull secrets keep them in, and the programs
//! that keep them for Docker. Read for each download, so that a login made later counts.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use flexinfer_core::sources::oci::{Login, Logins, Stored};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// A program that asks somebody at another screen is not waited for.
const HELPER_LIMIT: Duration = Duration::from_secs(20);

/// Where logins are looked for, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginFiles(Vec<PathBuf>);

/// What a program says of a login.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Told {
    username: String,
    secret: String,
}

impl LoginFiles {
    /// These files alone. One that is not there has no logins.
    pub fn at(files: Vec<PathBuf>) -> Self {
        Self(files)
    }

    /// Those of a user with this environment: `REGISTRY_AUTH_FILE`, `$DOCKER_CONFIG/config.json` or
    /// `~/.docker/config.json`, and podman's `$XDG_RUNTIME_DIR/containers/auth.json`.
    pub fn of_user(environment: impl Fn(&str) -> Option<String>) -> Self {
        let path =
            |name: &str| environment(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let docker = path("DOCKER_CONFIG").or_else(|| Some(path("HOME")?.join(".docker")));
        let docker = docker.map(|folder| folder.join("config.json"));
        let podman = path("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json"));
        Self([path("REGISTRY_AUTH_FILE"), docker, podman].into_iter().flatten().collect())
    }

    /// The login for `repository` of `registry`, if there is one.
    pub(crate) async fn login(&self, registry: &str, repository: &str) -> Option<Login> {
        for file in &self.0 {
            let found = read(file).and_then(|logins| logins.find(registry, repository));
            let login = match found {
                Some(Stored::Here(login)) => Some(login),
                Some(Stored::Helper { program, key }) => ask(&program, &key).await,
                None => None,
            };
            if login.is_some() {
                return login;
            }
        }
        None
    }
}

/// A file that cannot be read has no logins: what is public can be had all the same.
fn read(file: &Path) -> Option<Logins> {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "logins for registries cannot be read");
            return None;
        }
    };
    match Logins::parse(&text) {
        Ok(logins) => Some(logins),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "logins for registries cannot be read");
            None
        }
    }
}

/// Asks `docker-credential-<program>` for the login that it keeps for `key`.
async fn ask(program: &str, key: &str) -> Option<Login> {
    let name = format!("docker-credential-{program}");
    let told = match tokio::time::timeout(HELPER_LIMIT, run(&name, key)).await {
        Ok(Ok(told)) => told?,
        Ok(Err(error)) => {
            tracing::warn!(program = name, %error, "the program with the logins for registries failed");
            return None;
        }
        Err(_) => {
            tracing::warn!(
                program = name,
                "the program with the logins for registries does not answer"
            );
            return None;
        }
    };
    if told.username == "<token>" {
        tracing::warn!(registry = key, "only logins by name and password are understood");
        return None;
    }
    Login::new(&told.username, &told.secret)
}

/// `None` where the program has no such login: it fails then, and says so.
async fn run(program: &str, key: &str) -> io::Result<Option<Told>> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(key.as_bytes()).await?;
    }
    let output = child.wait_with_output().await?;
    if !output.status.success() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&output.stdout)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn logins_are_looked_for_where_docker_and_podman_keep_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        let auths = |host: &str| format!(r#"{{"auths":{{"{host}":{{"auth":"bWU6c2VjcmV0"}}}}}}"#);
        write("named.json", &auths("named.test"));
        write("home/.docker/config.json", &auths("docker.test"));
        write("run/containers/auth.json", &auths("podman.test"));
        write("broken/config.json", "{");
        let environment = |docker: Option<&'static str>| {
            move |name: &str| match name {
                "REGISTRY_AUTH_FILE" => Some(at("named.json").display().to_string()),
                "HOME" => Some(at("home").display().to_string()),
                "XDG_RUNTIME_DIR" => Some(at("run").display().to_string()),
                "DOCKER_CONFIG" => docker.map(|docker| at(docker).display().to_string()),
                _ => None,
            }
        };
        let files = LoginFiles::of_user(environment(None));
        for (registry, found) in [
            ("named.test", true),
            ("docker.test", true),
            ("podman.test", true),
            ("other.test", false),
        ] {
            assert_eq!(files.login(registry, "a").await.is_some(), found, "{registry}");
        }
        let other = LoginFiles::of_user(environment(Some("broken")));
        assert_eq!(other.login("docker.test", "a").await, None, "another folder was named");
        assert!(
            other.login("podman.test", "a").await.is_some(),
            "a broken file costs nothing else"
        );
        assert_eq!(LoginFiles::of_user(|_| None), LoginFiles::default());
    }

    #[tokio::test]
    async fn a_program_that_is_missing_or_has_none_means_no_login() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, r#"{"credsStore":"of-nobody-at-all"}"#).unwrap();
        let files = LoginFiles::at(vec![folder.path().join("missing"), file]);
        assert_eq!(files.login("reg.test", "a").await, None);
        assert!(matches!(run("false", "reg.test").await, Ok(None) | Err(_)));
    }
}
