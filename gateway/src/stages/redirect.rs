//! Where an engine sends its client on to: an address within it is one behind the gateway for the client, which can
//! reach no other and shall know no other.

use std::net::SocketAddr;

use flexinfer_core::effective::Spoken;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue};

use crate::tls;

/// Rewrites where the answer of the engine at `address` leads to; `prefix` was taken off the path.
pub(crate) fn lead_back(
    fields: &mut HeaderMap,
    address: SocketAddr,
    spoken: &Spoken,
    prefix: Option<&str>,
) {
    let host = tls::host(address, spoken);
    let location = fields.get(LOCATION).and_then(|location| location.to_str().ok());
    let led = location.and_then(|location| within(location, &host, prefix.unwrap_or_default()));
    if let Some(location) = led.and_then(|location| HeaderValue::try_from(location).ok()) {
        fields.insert(LOCATION, location);
    }
}

/// What `location` is called behind the gateway if it is within the engine `host`; `None` where it may stay.
fn within(location: &str, host: &str, prefix: &str) -> Option<String> {
    let path = match location.split_once("//") {
        Some((scheme, rest)) if ["http:", "https:", ""].contains(&scheme) => {
            let ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at_checked(ends)?;
            authority.eq_ignore_ascii_case(host).then_some(path)?
        }
        _ => location.starts_with('/').then_some(location)?,
    };
    // With two slashes before it, what is a path of the engine's would be another host to the client.
    let path = path.trim_start_matches('/');
    // An engine that heeds `x-forwarded-prefix` has said it already.
    let known = path
        .strip_prefix(prefix.trim_start_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
    let prefix = if known { "" } else { prefix };
    Some(format!("{prefix}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_within_the_engine_lies_behind_the_gateway() {
        let host = "10.0.0.7:8000";
        for (location, prefix, led) in [
            ("http://10.0.0.7:8000/web/?a=b#c", "/model/m", Some("/model/m/web/?a=b#c")),
            ("//10.0.0.7:8000/web/", "/model/m", Some("/model/m/web/")),
            ("http://10.0.0.7:8000", "", Some("/")),
            ("http://10.0.0.7:8000?a", "/model/m", Some("/model/m/?a")),
            ("/web/", "/model/m", Some("/model/m/web/")),
            ("/model/m/web/", "/model/m", Some("/model/m/web/")),
            ("/model/more", "/model/m", Some("/model/m/model/more")),
            ("/web/", "", Some("/web/")),
            ("http://10.0.0.7:8000//elsewhere/x", "", Some("/elsewhere/x")),
            ("http://10.0.0.7:8000///elsewhere/x", "/model/m", Some("/model/m/elsewhere/x")),
            ("web/", "/model/m", None),
            ("?page=2", "/model/m", None),
            ("https://elsewhere/x", "/model/m", None),
            ("//elsewhere/x", "/model/m", None),
            ("http://10.0.0.7:80001/x", "/model/m", None),
            ("mailto:a//b", "/model/m", None),
        ] {
            assert_eq!(within(location, host, prefix).as_deref(), led, "{location} {prefix}");
        }
    }
}
