//! How downloads are made, decided by the process that makes them.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use flexinfer_core::sources::download::{BadEndpoint, Hub, Terms};

use crate::logins::LoginFiles;

/// A hub's token. Never shown, never written.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token as it stands in `HF_TOKEN` or a file; `None` if nothing but space is there.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// Everything that a download needs to know beside what to get and where to put it.
#[derive(Clone, Debug)]
pub struct FetchSettings {
    /// The hub (`HF_ENDPOINT`), registries without TLS, and how often a failure is tried again.
    pub terms: Terms,
    /// `HF_TOKEN`.
    pub token: Option<Token>,
    /// Where logins for registries are looked for; default nowhere.
    pub logins: LoginFiles,
    /// Files fetched at the same time; default 4.
    pub concurrency: NonZeroUsize,
    /// The longest wait for a connection; default 10 s.
    pub connect_timeout: Duration,
    /// The longest silence in an answer before it is resumed by a new request; default 30 s.
    pub silence_timeout: Duration,
    /// Wait while another process downloads into the same folder, and then use what it got;
    /// default yes. Files come out right without it as well, only more is downloaded.
    pub exclusive: bool,
}

impl FetchSettings {
    /// The default settings for the hub at `endpoint`.
    pub fn new(endpoint: &str, token: Option<Token>) -> Result<Self, BadEndpoint> {
        Ok(Self {
            terms: Terms::with(Hub::at(endpoint)?),
            token,
            logins: LoginFiles::default(),
            concurrency: NonZeroUsize::MIN.saturating_add(3),
            connect_timeout: Duration::from_secs(10),
            silence_timeout: Duration::from_secs(30),
            exclusive: true,
        })
    }
}
