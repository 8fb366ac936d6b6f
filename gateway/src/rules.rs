//! What is asked of requests beyond being understood: who may send them, how many, and how large they
//! may be. Everything is off unless the settings say otherwise.

use std::sync::Arc;

use flexinfer_core::cors::Origins;
use flexinfer_core::hosts::Hosts;
use flexinfer_core::limits::{Admission, Clamp};

use crate::accounts::Accounts;
use crate::keys::{Keys, KeysError};
use crate::secrets::Secrets;
use crate::settings::RuleSettings;
use crate::tls::{Trust, TrustError};

/// The rules of one gateway.
#[derive(Clone, Default)]
pub struct Rules {
    /// Who has a key; `None` lets everybody in.
    pub keys: Option<Arc<Keys>>,
    /// What was used of the limits; `None` where there can be none.
    pub accounts: Option<Arc<Accounts>>,
    /// The pages in browsers that may read answers (`--cors-origins`).
    pub origins: Origins,
    /// The names that the gateway is asked by (`--allowed-hosts`); `None` where any will do.
    pub hosts: Option<Hosts>,
    /// The keys that engines want, and whose certificates are believed.
    pub secrets: Arc<Secrets>,
    /// Whether requests must be well-formed (`PROXY_VALIDATE_REQUESTS`).
    pub validate: bool,
    /// How the length of answers is cut down (`PROXY_MAX_TOKENS_CLAMP_ENABLED`).
    pub clamp: Option<Clamp>,
    /// How requests are measured that have to fit (`PROXY_ADMISSION_ENABLED`).
    pub admission: Option<Admission>,
    /// The tokens of an answer that its request does not bound, as far as limits are concerned.
    pub default_max_tokens: u32,
}

/// Why a gateway cannot start with what it is told of callers and engines.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The keys of callers.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The authorities that engines' certificates are signed by.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl Rules {
    /// What `settings` ask for. Must be called in a tokio runtime, where the keys file is watched.
    pub fn new(settings: &RuleSettings) -> Result<Self, RulesError> {
        let token = settings.token.clone();
        let keys = match &settings.keys_file {
            _ if !settings.authenticate => None,
            Some(file) => Some(Keys::watch(file, token)?),
            None => Some(Keys::fixed(token)),
        };
        let trust = Trust::new(settings.engine_ca.as_deref())?;
        let secrets = Secrets::new(settings.engine_secrets.clone());
        let secrets = secrets.of(settings.engine_secrets_of.clone());
        let policy = settings.policy;
        let limited = policy.global.is_some() || policy.per_model.is_some();
        // A file can say tomorrow what it does not say today.
        let watched = keys.as_ref().is_some_and(|keys| keys.watched());
        Ok(Self {
            accounts: (limited || watched).then(|| Accounts::new(policy)),
            keys,
            origins: settings.origins.clone(),
            hosts: settings.hosts.clone(),
            secrets: Arc::new(secrets.trusting(trust)),
            validate: settings.validate,
            clamp: settings.clamp,
            admission: settings.admission,
            default_max_tokens: settings.default_max_tokens,
        })
    }
}
