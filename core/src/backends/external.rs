//! An engine that already runs at `config.url`: asked whether it serves, never started, never
//! stopped.

use std::time::Duration;

use super::command::{EVERY_API, PROBE, probe};
use super::engine::{Engine, MINUTE};
use super::keys::{Key, Takes};
use super::{Api, Complaint, Config, Launch, LaunchError, Placement, Subject, Vendor};
use crate::sources::Scheme;

pub(super) struct External;

const KEYS: &[Key] = &[
    Key::read("url", Takes::Text),
    PROBE,
    Key::read("contextSize", Takes::Integer),
    Key::read("maxModelLen", Takes::Integer),
];

impl Engine for External {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        EVERY_API
    }

    fn port(&self) -> u16 {
        80
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let address = Address::of(subject.config)?;
        let mut launch = Launch::of("", placement, probe(subject.config, "/v1/models")?);
        launch.host = address.host;
        launch.port = address.port;
        launch.startup_limit = self.startup_limit();
        Ok(launch)
    }

    /// It is there or it is not; nothing is loaded for us.
    fn startup_limit(&self) -> Duration {
        MINUTE
    }

    fn vendors(&self) -> &'static [Vendor] {
        &[Vendor::Nvidia, Vendor::Amd, Vendor::Intel, Vendor::Cpu]
    }

    fn sources(&self) -> &'static [Scheme] {
        &[]
    }

    fn tls_name(&self, config: Config<'_>) -> Option<String> {
        Address::of(config).ok().filter(|address| address.secured).map(|address| address.host)
    }

    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        complaints.extend(Address::of(subject.config).err());
        complaints.extend(probe(subject.config, "/").err());
        for option in ["command", "args", "env"] {
            if subject.config.has(option) {
                let message = "ignored: an external engine is never started";
                complaints.push(Complaint::warning(format!("spec.config.{option}"), message));
            }
        }
        complaints
    }
}

/// Where an external engine listens.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
    /// Whether it is spoken to by TLS.
    secured: bool,
}

impl Address {
    fn of(config: Config<'_>) -> Result<Self, Complaint> {
        let complain = |message: String| Complaint::error("spec.config.url", message);
        let Some(url) = config.text("url")? else {
            let message = "missing; write where the engine listens: url: http://127.0.0.1:8000";
            return Err(complain(message.to_owned()));
        };
        let (secured, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => {
                return Err(complain(format!("`{url}` has to start with http:// or https://")));
            }
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A request's path is passed on as it came, so that only the usual base path can be named.
        if !matches!(path.trim_end_matches('/'), "" | "v1") {
            return Err(complain(format!(
                "`{url}`: a path is not supported; write only the host and its port"
            )));
        }
        if authority.contains('@') {
            return Err(complain("credentials in a URL are not supported".to_owned()));
        }
        Self::from_authority(authority, secured)
            .ok_or_else(|| complain(format!("`{url}` is not of the form http://host:port")))
    }

    fn from_authority(authority: &str, secured: bool) -> Option<Self> {
        let usual = if secured { "443" } else { "80" };
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']')?;
                (host, after.strip_prefix(':').or((after.is_empty()).then_some(usual))?)
            }
            None => authority.split_once(':').unwrap_or((authority, usual)),
        };
        let port = port.parse().ok().filter(|port| *port != 0)?;
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port, secured })
    }
}
