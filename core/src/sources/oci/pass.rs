//! How a registry lets us in: by nothing, by the login itself, or by a token that a service gives for the
//! login. Says what may be sent along with a request and never holds the login (SEC-07).

use std::time::Duration;

use serde::Deserialize;
use url::Url;

use super::Registry;
use super::challenge::Challenge;
use crate::activation::{Failure, Reason};
use crate::sources::download::{Authorization, Head, Session};

/// Challenges in a row that are answered. The first may be for a token that has run out.
const MOST_CHALLENGES: u32 = 2;

/// How we stand with a registry about one repository.
#[derive(Clone, Debug)]
pub(in crate::sources) struct Pass {
    registry: Registry,
    repository: String,
    /// Whether there is a login, for what is told when one is asked for.
    logged_in: bool,
    shown: Authorization,
    /// Challenges since the last answer.
    challenges: u32,
}

/// What to do about a challenge.
#[derive(Debug)]
pub(in crate::sources) enum Reply {
    /// Ask once more: something else goes along now.
    Again,
    /// Ask there for a token first.
    Token(Url),
    /// Nothing will help.
    Never(Failure),
}

/// What a service's answer to the request for a token means.
#[derive(Debug)]
pub(in crate::sources) enum Told {
    /// Its body has the token.
    Read,
    /// It may have one later.
    Later { why: String, after: Option<Duration> },
    /// It has none for us.
    Never(Failure),
}

#[derive(Deserialize)]
struct Given {
    token: Option<String>,
    access_token: Option<String>,
}

impl Pass {
    pub(in crate::sources) fn new(registry: Registry, repository: &str) -> Self {
        let repository = repository.to_owned();
        let shown = Authorization::Nothing;
        Self { registry, repository, logged_in: false, shown, challenges: 0 }
    }

    pub(in crate::sources) fn with_login(self, logged_in: bool) -> Self {
        Self { logged_in, ..self }
    }

    pub(in crate::sources) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What goes along with a request to `url`: nothing but to the registry itself.
    pub(in crate::sources) fn authorization(&self, url: &Url) -> Authorization {
        if self.registry.owns(url) { self.shown.clone() } else { Authorization::Nothing }
    }

    /// The registry has answered with what was asked for, or it is asked once more for another reason.
    pub(in crate::sources) fn anew(&mut self) {
        self.challenges = 0;
    }

    /// The registry itself answered 401.
    pub(in crate::sources) fn challenged(&mut self, head: &Head) -> Reply {
        self.challenges += 1;
        let by_login = self.shown == Authorization::Login;
        match Challenge::best(head.all("www-authenticate")) {
            _ if self.challenges > MOST_CHALLENGES => Reply::Never(self.refused()),
            Some(Challenge::Bearer { realm, service, scope }) => {
                match self.token_url(&realm, service, scope) {
                    Some(url) => Reply::Token(url),
                    None => Reply::Never(self.distrusted(&realm)),
                }
            }
            Some(Challenge::Basic) if self.logged_in && !by_login => {
                self.shown = Authorization::Login;
                Reply::Again
            }
            Some(Challenge::Basic) | None => Reply::Never(self.refused()),
        }
    }

    fn token_url(
        &self,
        realm: &str,
        service: Option<String>,
        scope: Option<String>,
    ) -> Option<Url> {
        let mut url = Url::parse(realm).ok()?;
        if !self.registry.trusts(&url) || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository));
        let mut query = url.query_pairs_mut();
        query.extend_pairs(service.map(|service| ("service", service)));
        query.append_pair("scope", &scope);
        drop(query);
        Some(url)
    }

    /// What the answer to a request for a token means.
    pub(in crate::sources) fn told(&self, head: &Head) -> Told {
        match head.status {
            200 => Told::Read,
            400 | 401 | 403 => Told::Never(self.refused()),
            status @ (408 | 425 | 429 | 500..=599) => Told::Later {
                why: format!("the token service of {} answered {status}", self.registry.host()),
                after: head.number("retry-after").map(Duration::from_secs),
            },
            status => Told::Never(Failure::new(
                Reason::DownloadFailed,
                format!("the token service of {} answered {status}", self.registry.host()),
            )),
        }
    }

    /// Takes the token out of what the service answered.
    pub(in crate::sources) fn take(&mut self, body: &[u8]) -> Result<(), String> {
        let wrong = || format!("the token service of {} gave no token", self.registry.host());
        let given = serde_json::from_slice::<Given>(body).map_err(|_| wrong())?;
        let token = given.token.or(given.access_token).filter(|token| !token.is_empty());
        // What it says comes back to it in a header, so that it must be able to stand there.
        let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
        self.shown = Authorization::Session(Session::new(token.ok_or_else(wrong)?));
        Ok(())
    }

    /// We may not have it, or it is not there: registries say the same of both.
    pub(in crate::sources) fn refused(&self) -> Failure {
        let (host, repository) = (self.registry.host(), &self.repository);
        let advice = if self.logged_in {
            format!("check the name, and that the login for {host} may pull it")
        } else {
            format!(
                "check the name, or log in: `docker login {host}` where this runs, on a cluster a pull secret in \
                 the annotation flexinfer.ai/image-pull-secrets"
            )
        };
        let message = format!(
            "{host} does not let us pull `{repository}`: it is private or not there; {advice}"
        );
        Failure::new(Reason::GatedRepository, message)
    }

    fn distrusted(&self, realm: &str) -> Failure {
        let host = self.registry.host();
        let message = format!(
            "{host} sends us to {realm:?} for a token, to which no login is sent over plain http; use https there, \
             or name that host among the insecure registries"
        );
        Failure::new(Reason::GatedRepository, message)
    }
}
