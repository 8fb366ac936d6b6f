//! What engines and we know each other by: the keys that they want of their clients, each a file of one folder,
//! read again when it changes, and whose certificates we believe. A key goes to the engine it is for, and
//! nowhere else.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use tracing::warn;

use crate::settings::SecretsOf;
use crate::tls::Trust;

/// How old a key may be that is sent: so long does a change take to count.
const FRESH: Duration = Duration::from_secs(2);
/// A longer file is no key.
const LONGEST: u64 = 16 * 1024;

/// The keys of one folder, and whom to believe.
#[derive(Debug, Default)]
pub struct Secrets {
    trust: Trust,
    folder: Option<PathBuf>,
    of: SecretsOf,
    /// As many as Models name.
    known: Mutex<HashMap<Box<str>, Known>>,
}

/// The key that a Model names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secret<'a> {
    /// Of the Model.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl Secret<'_> {
    /// The file that is for Models of its namespace alone, whose names have no dots.
    fn own(self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }
}

#[derive(Clone, Debug)]
struct Known {
    read: Instant,
    bearer: Option<HeaderValue>,
}

impl Secrets {
    /// The keys in `folder`; without one there are none.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// The same, with keys that Models may name as they are called if they are `of` these.
    #[must_use]
    pub fn of(self, of: SecretsOf) -> Self {
        Self { of, ..self }
    }

    /// The same, believing certificates as `trust` says.
    #[must_use]
    pub fn trusting(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Whose certificates are believed.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// `Bearer` and the key that `secret` names. Without a key the engine is asked without one, which is
    /// logged: it says itself that it wants one.
    pub(crate) fn bearer(&self, secret: Secret<'_>) -> Option<HeaderValue> {
        let own = secret.own();
        let mut known = self.known.lock();
        if let Some(known) = known.get(&*own)
            && known.read.elapsed() < FRESH
        {
            return known.bearer.clone();
        }
        let told = |problem| warn!("the key {own}: {problem}");
        let bearer = self.read(secret, &own).map_err(told).ok();
        known.insert(own.into(), Known { read: Instant::now(), bearer: bearer.clone() });
        bearer
    }

    /// The file `<namespace>.<name>`; that called `name` alone only where its Models may have it.
    fn read(&self, secret: Secret<'_>, own: &str) -> Result<HeaderValue, String> {
        let Some(folder) = &self.folder else {
            return Err("there is no folder of keys; name it with --engine-secrets".to_owned());
        };
        let bare = match &self.of {
            SecretsOf::All => true,
            SecretsOf::Namespace(namespace) => namespace == secret.namespace,
            SecretsOf::Nobody => false,
        };
        let own = folder.join(own);
        let path = if bare && !own.exists() { folder.join(secret.name) } else { own };
        let told = |error| format!("cannot read {}: {error}", path.display());
        let length = fs::metadata(&path).map_err(told)?.len();
        if length > LONGEST {
            return Err(format!("{} is too long for a key", path.display()));
        }
        let text = fs::read_to_string(&path).map_err(told)?;
        let bearer = HeaderValue::try_from(format!("Bearer {}", text.trim()));
        let mut bearer = bearer
            .ok()
            .filter(|_| !text.trim().is_empty())
            .ok_or_else(|| format!("{} holds no key that a header could carry", path.display()))?;
        bearer.set_sensitive(true);
        Ok(bearer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_text_of_its_file_and_anything_else_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("good", " sk-1\n");
        write("empty", "\n");
        write("odd", "a\nb");
        write("long", &"x".repeat(20_000));
        let secrets = Secrets::new(Some(folder.path().to_path_buf()));
        let of = |name| Secret { namespace: "default", name };
        assert_eq!(secrets.bearer(of("good")), Some(HeaderValue::from_static("Bearer sk-1")));
        assert!(!format!("{secrets:?}").contains("sk-1"), "a key in a log");
        for (name, problem) in [
            ("empty", "holds no key"),
            ("odd", "holds no key"),
            ("long", "too long"),
            ("missing", "cannot read"),
        ] {
            assert_eq!(secrets.bearer(of(name)), None);
            let told = secrets.read(of(name), &of(name).own()).unwrap_err();
            assert!(told.contains(problem), "{told}");
        }
        let told = Secrets::default().read(of("good"), "default.good").unwrap_err();
        assert!(told.contains("--engine-secrets"));
    }

    #[test]
    fn a_model_of_another_namespace_gets_no_key_but_its_own() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("vendor", "sk-ours"), ("team.vendor", "sk-theirs")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let bearer = |of: SecretsOf, namespace, name| {
            let secrets = Secrets::new(Some(folder.path().to_path_buf())).of(of);
            let bearer = secrets.bearer(Secret { namespace, name });
            bearer.map(|bearer| bearer.to_str().unwrap().to_owned())
        };
        let ours = || SecretsOf::Namespace("system".to_owned());
        assert_eq!(bearer(ours(), "system", "vendor").as_deref(), Some("Bearer sk-ours"));
        assert_eq!(bearer(ours(), "team", "vendor").as_deref(), Some("Bearer sk-theirs"));
        assert_eq!(bearer(ours(), "other", "vendor"), None);
        assert_eq!(bearer(ours(), "other", "team.vendor"), None);
        assert_eq!(bearer(SecretsOf::Nobody, "system", "vendor"), None);
        assert_eq!(bearer(SecretsOf::All, "other", "vendor").as_deref(), Some("Bearer sk-ours"));
    }
}
