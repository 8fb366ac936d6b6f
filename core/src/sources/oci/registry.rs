//! A registry's address, the URLs on it, and where plain http is allowed.

use url::Url;

use super::reference::DOCKER_HUB;
use crate::sources::download::{BadEndpoint, stays_on_this_machine};

/// Where Docker's own registry answers.
const DOCKER_HUB_ENDPOINT: &str = "registry-1.docker.io";

/// A registry, and the hosts that are asked without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// As people write it, and as logins name it.
    host: String,
    origin: Url,
    /// The hosts, with their ports, that plain http is allowed to.
    plain: Vec<String>,
}

impl Registry {
    /// The registry at `host`, with its port if it has one. It is asked over https, but over plain http where
    /// it is on this machine or among `plain`.
    pub fn at(host: &str, plain: &[String]) -> Result<Self, BadEndpoint> {
        let name = if host == DOCKER_HUB { DOCKER_HUB_ENDPOINT } else { host };
        let parsed = |scheme: &str| {
            Url::parse(&format!("{scheme}://{name}/")).map_err(|_| BadEndpoint::not_a_url(host))
        };
        let open = parsed("http")?;
        let may_be_plain = is_plain(&open, plain);
        let origin = if may_be_plain { open } else { parsed("https")? };
        Ok(Self { host: host.to_owned(), origin, plain: plain.to_vec() })
    }

    /// As people write it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is on this very machine: no proxy may come between.
    pub fn is_local(&self) -> bool {
        stays_on_this_machine(&self.origin)
    }

    /// Whether `url` is on the registry itself, and not on the storage it redirects to.
    pub fn owns(&self, url: &Url) -> bool {
        url.origin() == self.origin.origin()
    }

    /// Whether a login may be sent to `url`, which the registry has named: over https, or where plain http
    /// was allowed.
    pub(super) fn trusts(&self, url: &Url) -> bool {
        match url.scheme() {
            "https" => url.has_host(),
            "http" => is_plain(url, &self.plain),
            _ => false,
        }
    }

    /// The manifest of `repository` at `revision`, a tag or a digest. Both were checked when they were read.
    pub(super) fn manifest_url(
        &self,
        repository: &str,
        revision: &str,
    ) -> Result<Url, BadEndpoint> {
        self.url(&format!("v2/{repository}/manifests/{revision}"))
    }

    /// The blob of `repository` with this digest.
    pub(super) fn blob_url(&self, repository: &str, digest: &str) -> Result<Url, BadEndpoint> {
        self.url(&format!("v2/{repository}/blobs/{digest}"))
    }

    fn url(&self, path: &str) -> Result<Url, BadEndpoint> {
        self.origin.join(path).map_err(|_| BadEndpoint::not_a_url(&self.host))
    }
}

fn is_plain(url: &Url, plain: &[String]) -> bool {
    let Some(host) = url.host_str() else { return false };
    let with_port = url.port().map(|port| format!("{host}:{port}"));
    let named = with_port.as_deref().unwrap_or(host);
    stays_on_this_machine(url) || plain.iter().any(|known| known.eq_ignore_ascii_case(named))
}
