//! Logins for registries, as `docker login` and pull secrets keep them: the JSON of
//! `~/.docker/config.json` and of `kubernetes.io/dockerconfigjson`.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::reference::DOCKER_HUB;

/// Docker's own registry has an address of its own in these files.
const DOCKER_HUB_KEYS: [&str; 3] = [DOCKER_HUB, "index.docker.io", "registry-1.docker.io"];

/// A name and a password. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    name: String,
    password: String,
}

impl Login {
    /// `None` where either is empty, as it stands there after `docker logout`.
    pub fn new(name: &str, password: &str) -> Option<Self> {
        let given = !name.is_empty() && !password.is_empty();
        given.then(|| Self { name: name.to_owned(), password: password.to_owned() })
    }

    /// The value of an `Authorization` header.
    pub fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.name, self.password)))
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Login(…)")
    }
}

/// Where a login is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In the file itself.
    Here(Login),
    /// By the program `docker-credential-<program>`, which gives it for `key`.
    Helper { program: String, key: String },
}

/// A file of logins that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("it is not the JSON of `docker login` ({0})")]
pub struct BadLogins(#[from] serde_json::Error);

/// The logins of one file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Logins {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Entry(…)")
    }
}

impl Logins {
    /// Reads a file of logins.
    pub fn parse(text: &[u8]) -> Result<Self, BadLogins> {
        Ok(serde_json::from_slice(text)?)
    }

    /// Where the login for `repository` of `registry` is: of the entries in the file the one that says most,
    /// as kubelets choose; else with the registry's own program; else with the program for all.
    pub fn find(&self, registry: &str, repository: &str) -> Option<Stored> {
        let entries = self.auths.iter().filter_map(|(key, entry)| {
            let said = fits(key, registry, repository)?;
            Some((said, entry.login()?))
        });
        if let Some((_, login)) = entries.max_by_key(|(said, _)| *said) {
            return Some(Stored::Here(login));
        }
        let of_registry = self.cred_helpers.iter().find(|(key, _)| is_host(place(key).0, registry));
        let program = of_registry.map_or(&self.creds_store, |(_, program)| program);
        let is_name =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        // The program's name becomes a command: a path in it would be another program.
        let is_program = !program.is_empty() && program.chars().all(is_name);
        let key = if registry == DOCKER_HUB { "https://index.docker.io/v1/" } else { registry }
            .to_owned();
        is_program.then(|| Stored::Helper { program: program.clone(), key })
    }
}

impl Entry {
    fn login(&self) -> Option<Login> {
        let decoded = STANDARD.decode(self.auth.trim()).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let in_auth = text.as_deref().and_then(|text| text.split_once(':'));
        let (name, password) = in_auth.unwrap_or((&self.username, &self.password));
        Login::new(name, password.trim_end_matches('\0'))
    }
}

/// How much the key of an entry says if it is about this repository: by more of the path before a pattern.
fn fits(key: &str, registry: &str, repository: &str) -> Option<(usize, bool)> {
    let (host, path) = place(key);
    if !is_host(host, registry) {
        return None;
    }
    let rest = repository.strip_prefix(path)?;
    let ends = path.is_empty() || rest.is_empty() || rest.starts_with('/');
    ends.then(|| (path.len(), !host.contains('*')))
}

/// The host and the path of a key, which may be written as an address.
fn place(key: &str) -> (&str, &str) {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let bare = bare.trim_end_matches('/');
    let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
    (host, if matches!(path, "v1" | "v2") { "" } else { path })
}

/// Whether the host of a key, in which a `*` stands for letters between dots, is `registry`.
fn is_host(host: &str, registry: &str) -> bool {
    if registry == DOCKER_HUB {
        return DOCKER_HUB_KEYS.contains(&host);
    }
    let (mut own, mut of_registry) = (host.split('.'), registry.split('.'));
    loop {
        match (own.next(), of_registry.next()) {
            (None, None) => return true,
            (Some(pattern), Some(label)) if is_label(pattern, label) => {}
            _ => return false,
        }
    }
}

fn is_label(pattern: &str, label: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    match pattern.split_once('*') {
        Some((begins, ends)) => {
            label.len() >= begins.len() + ends.len()
                && label.starts_with(begins)
                && label.ends_with(ends)
        }
        None => pattern == label,
    }
}
