//! The hub's address, the URLs on it, and to whom the token may go (SEC-07).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::{Host, Url};

use super::super::RelativePath;

/// An address that cannot be a hub's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address `{endpoint}` {problem}; write it like https://huggingface.co")]
pub struct BadEndpoint {
    endpoint: String,
    problem: &'static str,
}

impl BadEndpoint {
    /// An address that no URL can be made of.
    pub(crate) fn not_a_url(endpoint: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), problem: "is not a URL" }
    }
}

/// Where a hub answers: `HF_ENDPOINT`, by default `https://huggingface.co`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    endpoint: Url,
}

impl Hub {
    /// The address of the public hub.
    pub const PUBLIC: &str = "https://huggingface.co";

    /// The hub at `endpoint`: http or https, a path allowed, without user, query or fragment.
    pub fn at(endpoint: &str) -> Result<Self, BadEndpoint> {
        let refused = |problem| BadEndpoint { endpoint: endpoint.to_owned(), problem };
        let url = Url::parse(endpoint).map_err(|_| refused("is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(refused("is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("holds a password; give the token by HF_TOKEN"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused("has a query or a fragment"));
        }
        Ok(Self { endpoint: url })
    }

    /// The address as a person would write it.
    pub fn as_str(&self) -> &str {
        self.endpoint.as_str().trim_end_matches('/')
    }

    /// Whether a request to `url` may carry the token: to the hub's own scheme, host and port only,
    /// and over plain http only where it does not leave the machine.
    pub fn may_see_token(&self, url: &Url) -> bool {
        url.origin() == self.endpoint.origin()
            && (url.scheme() == "https" || stays_on_this_machine(url))
    }

    /// Whether the hub is on this very machine: no proxy may come between, which would see the token.
    pub fn is_local(&self) -> bool {
        stays_on_this_machine(&self.endpoint)
    }

    /// Whether `url` is on the hub itself, and not on the storage it redirects to.
    pub fn owns(&self, url: &Url) -> bool {
        url.origin() == self.endpoint.origin()
    }

    /// The list of files of `repository` at `revision`, with their sizes and digests.
    pub(super) fn list_url(&self, repository: &str, revision: &str) -> Result<Url, BadEndpoint> {
        let path = format!("api/models/{repository}/revision/{}", segment(revision));
        let mut url = self.url(&path)?;
        url.set_query(Some("blobs=true"));
        Ok(url)
    }

    /// One file of `repository` at `revision`. Each name of the path is encoded by itself.
    pub(super) fn file_url(
        &self,
        repository: &str,
        revision: &str,
        path: &RelativePath,
    ) -> Result<Url, BadEndpoint> {
        let path = path.names().map(segment).collect::<Vec<_>>().join("/");
        self.url(&format!("{repository}/resolve/{}/{path}", segment(revision)))
    }

    fn url(&self, path: &str) -> Result<Url, BadEndpoint> {
        Url::parse(&format!("{}/{path}", self.as_str())).map_err(|_| BadEndpoint {
            endpoint: self.as_str().to_owned(),
            problem: "does not take a path",
        })
    }
}

fn segment(text: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, KEPT).to_string()
}

/// Whether what is sent to `url` never reaches a network.
pub(crate) fn stays_on_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
