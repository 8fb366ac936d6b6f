//! Who asks: the callers that keys belong to, and what each may do. A snapshot, read from a keys file
//! (`file.rs`) or made of one token; a request keeps the one it was identified by.

mod allowed;
mod digest;
mod file;
mod headers;
mod presented;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

pub use allowed::Allowed;
pub use digest::Digest;
pub use file::{ParsedKeys, parse};
pub use headers::{CREDENTIALS, is_internal, without_key};
pub use presented::{Carrier, LONGEST_KEY, Presented, SUBPROTOCOL};

use foldhash::fast::RandomState;

use crate::limits::CallerLimits;
use crate::rejection::Rejection;

/// Whom several callers belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// What logs and limits know it by; the only one of its name.
    pub name: Arc<str>,
    /// How much its callers may use together.
    pub limits: CallerLimits,
}

/// Somebody who has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// What logs and limits know it by; the only one of its name.
    pub name: Arc<str>,
    /// Whom it belongs to, if the file says so.
    pub tenant: Option<Arc<Tenant>>,
    /// The models it may use.
    pub models: Allowed,
    /// How much of them; beside that its tenant's limits count.
    pub limits: CallerLimits,
    /// When its keys end to count, in seconds of Unix time; `None` is never.
    pub expires: Option<i64>,
}

impl Caller {
    /// Whether anything is limited for it, by itself or with others of its tenant.
    pub fn is_limited(&self) -> bool {
        self.each_limits().any(CallerLimits::any)
    }

    /// Whether its tokens are counted.
    pub fn counts_tokens(&self) -> bool {
        self.each_limits().any(|limits| limits.tokens.is_some())
    }

    fn each_limits(&self) -> impl Iterator<Item = &CallerLimits> {
        let shared = self.tenant.as_ref().map(|tenant| &tenant.limits);
        std::iter::once(&self.limits).chain(shared)
    }
}

/// Every caller there is, by the digests of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callers {
    /// Hashed quickly: clients look up what they like, but put nothing in.
    by_digest: HashMap<Digest, Arc<Caller>, RandomState>,
}

impl Callers {
    /// The one caller of `token`, who may do everything (`PROXY_AUTH_TOKEN`).
    pub fn of_token(token: &str) -> Self {
        let caller = Caller {
            name: "token".into(),
            tenant: None,
            models: Allowed::All,
            limits: CallerLimits::default(),
            expires: None,
        };
        let mut callers = Self::default();
        callers.add(Digest::of(token.trim().as_bytes()), Arc::new(caller));
        callers
    }

    /// Gives `caller` one more key; false where somebody has it already, or where it is empty.
    pub fn add(&mut self, digest: Digest, caller: Arc<Caller>) -> bool {
        if digest == Digest::of(b"") || self.by_digest.contains_key(&digest) {
            return false;
        }
        self.by_digest.insert(digest, caller);
        true
    }

    /// These and those of `others`; of a key that both have, these.
    #[must_use]
    pub fn with(mut self, others: &Self) -> Self {
        for (digest, caller) in &others.by_digest {
            self.by_digest.entry(*digest).or_insert_with(|| Arc::clone(caller));
        }
        self
    }

    /// How many keys count.
    pub fn keys(&self) -> usize {
        self.by_digest.len()
    }

    /// Whose key was `presented`, at `now` in seconds of Unix time. The key is looked up by its
    /// digest, and what is found compared in constant time: neither tells how near a guess was.
    pub fn identify(&self, presented: Presented<'_>, now: i64) -> Result<&Arc<Caller>, Rejection> {
        let key = match presented {
            Presented::Key(key) => key,
            Presented::Nothing => return Err(Rejection::KeyMissing),
            Presented::Conflict => return Err(Rejection::KeysConflict),
        };
        if key.len() > LONGEST_KEY {
            return Err(Rejection::KeyUnknown);
        }
        let caller = self.by_digest.get(&Digest::of(key)).ok_or(Rejection::KeyUnknown)?;
        match caller.expires {
            Some(end) if end <= now => Err(Rejection::KeyExpired),
            _ => Ok(caller),
        }
    }
}
