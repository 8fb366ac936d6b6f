//! By which names a gateway is asked that only this machine reaches. A page of any site can have its own
//! name lead here (DNS rebinding): to its browser everything is then one site, and the page reads and
//! sends what it likes. The name it was asked by is all that tells.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::listed::listed;

/// The names that a gateway answers to, beside those that no site on the internet can have: addresses,
/// names without a dot such as `localhost`, and what lies below `localhost` and `internal`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<Allowed>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Allowed {
    Any,
    Exactly(String),
    /// Everything below this name, which begins with its dot.
    Below(String),
}

/// Why a text is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a host; write it without scheme and port like llm.example.com, *.example.com for all below it, or * for every name"
)]
pub struct NoHost(String);

/// What nobody can register on the internet (RFC 6761; ICANN's resolution of 2024-07-29).
const PRIVATE: [&str; 2] = [".localhost", ".internal"];

impl Hosts {
    /// All names by which a cluster's pods ask its Service `name` of `namespace`, where their names end with `domain`.
    pub fn of_service(name: &str, namespace: &str, domain: &str) -> Result<Self, NoHost> {
        let service = format!("{name}.{namespace}.svc");
        format!("{name},{name}.{namespace},{service},{service}.{domain}").parse()
    }

    /// These, and `others` too.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether a request may name `authority`, a host and perhaps a port.
    pub fn allows(&self, authority: &str) -> bool {
        let host = host(authority);
        if !host.contains('.') || host.parse::<Ipv4Addr>().is_ok() {
            return !authority.starts_with('[') || host.parse::<Ipv6Addr>().is_ok();
        }
        PRIVATE.iter().any(|private| lies_below(host, private))
            || self.0.iter().any(|allowed| match allowed {
                Allowed::Any => true,
                Allowed::Exactly(known) => host.eq_ignore_ascii_case(known),
                Allowed::Below(end) => lies_below(host, end),
            })
    }
}

/// The host in `authority`, without brackets, port and the dot of the root.
fn host(authority: &str) -> &str {
    if let Some((address, _)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    host.strip_suffix('.').unwrap_or(host)
}

/// Whether `host` ends with `end`, which begins with a dot, and has something before it.
fn lies_below(host: &str, end: &str) -> bool {
    let start = host.len().checked_sub(end.len()).filter(|start| *start > 0);
    start.and_then(|start| host.get(start..)).is_some_and(|found| found.eq_ignore_ascii_case(end))
}

impl FromStr for Hosts {
    type Err = NoHost;

    /// Names with commas between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        listed(text, allowed).map(Self)
    }
}

fn allowed(text: &str) -> Result<Allowed, NoHost> {
    if text == "*" {
        return Ok(Allowed::Any);
    }
    let name = text.strip_prefix("*.").unwrap_or(text);
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !name.split('.').all(part) {
        return Err(NoHost(text.to_owned()));
    }
    let below = name.len() < text.len();
    let name = name.to_ascii_lowercase();
    Ok(if below { Allowed::Below(format!(".{name}")) } else { Allowed::Exactly(name) })
}

impl fmt::Display for Hosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, allowed) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match allowed {
                Allowed::Any => write!(formatter, "{comma}*")?,
                Allowed::Exactly(name) => write!(formatter, "{comma}{name}")?,
                Allowed::Below(end) => write!(formatter, "{comma}*{end}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_site_can_be_called_is_always_answered() {
        let hosts = Hosts::default();
        for authority in [
            "localhost",
            "localhost:8080",
            "LocalHost.:8080",
            "chat.localhost:8080",
            "127.0.0.1:8080",
            "192.168.1.7",
            "[::1]:8080",
            "[fe80::1]",
            "my-machine:8080",
            "host.docker.internal:8080",
        ] {
            assert!(hosts.allows(authority), "{authority}");
        }
        for authority in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "127.0.0.1@evil.example",
            "evil.example:80:80",
            ".localhost",
            "notlocalhost.com",
            "[evil.example]:80",
            "[evil]:80",
            "machine.local",
        ] {
            assert!(!hosts.allows(authority), "{authority}");
        }
    }

    #[test]
    fn a_service_is_asked_by_every_name_that_its_cluster_has_for_it() {
        let service = Hosts::of_service("proxy", "ai", "corp.test").expect("names");
        let hosts = "llm.example.com".parse::<Hosts>().expect("a name").and(service);
        for authority in [
            "proxy:8080",
            "proxy.ai",
            "proxy.ai.svc:8080",
            "proxy.ai.svc.corp.test",
            "llm.example.com",
        ] {
            assert!(hosts.allows(authority), "{authority}");
        }
        for authority in [
            "proxy.other",
            "other.ai.svc",
            "proxy.ai.svc.cluster.local",
            "proxy.ai.svc.corp.test.evil.example",
            "ai.svc",
        ] {
            assert!(!hosts.allows(authority), "{authority}");
        }
        assert!(Hosts::of_service("proxy", "ai", "http://x").is_err());
    }

    #[test]
    fn further_names_are_answered_where_they_are_given() {
        let hosts: Hosts = "llm.example.com, *.corp.example".parse().expect("names");
        for authority in ["LLM.example.com:443", "llm.example.com.", "a.b.corp.example"] {
            assert!(hosts.allows(authority), "{authority}");
        }
        for authority in ["a.llm.example.com", "corp.example", "xcorp.example", "example.com"] {
            assert!(!hosts.allows(authority), "{authority}");
        }
        assert_eq!(hosts.to_string(), "llm.example.com,*.corp.example");
        assert!("*".parse::<Hosts>().expect("every name").allows("evil.example"));
        for wrong in
            ["https://x.example", "x.example:80", "a..b", "*x.example", "a.*.b", "ü.example"]
        {
            assert_eq!(wrong.parse::<Hosts>(), Err(NoHost(wrong.to_owned())));
        }
    }
}
