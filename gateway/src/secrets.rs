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
    /// As many as Models name.
    known: Mutex<HashMap<Box<str>, Known>>,
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

    /// The same, believing certificates as `trust` says.
    #[must_use]
    pub fn trusting(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Whose certificates are believed.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// `Bearer` and the key in the file `name`. Without a key the engine is asked without one, which is
    /// logged: it says itself that it wants one.
    pub(crate) fn bearer(&self, name: &str) -> Option<HeaderValue> {
        let mut known = self.known.lock();
        if let Some(known) = known.get(name)
            && known.read.elapsed() < FRESH
        {
            return known.bearer.clone();
        }
        let bearer = self.read(name).map_err(|problem| warn!("the key {name}: {problem}")).ok();
        known.insert(name.into(), Known { read: Instant::now(), bearer: bearer.clone() });
        bearer
    }

    fn read(&self, name: &str) -> Result<HeaderValue, String> {
        let Some(folder) = &self.folder else {
            return Err("there is no folder of keys; name it with --engine-secrets".to_owned());
        };
        let path = folder.join(name);
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
        assert_eq!(secrets.bearer("good"), Some(HeaderValue::from_static("Bearer sk-1")));
        assert!(!format!("{secrets:?}").contains("sk-1"), "a key in a log");
        for (name, problem) in [
            ("empty", "holds no key"),
            ("odd", "holds no key"),
            ("long", "too long"),
            ("missing", "cannot read"),
        ] {
            assert_eq!(secrets.bearer(name), None);
            let told = secrets.read(name).unwrap_err();
            assert!(told.contains(problem), "{told}");
        }
        assert!(Secrets::default().read("good").unwrap_err().contains("--engine-secrets"));
    }
}
