//! What of a request's head must not go on to an engine: the caller's key, and headers by which whoever
//! stands between the gateway and its engines says who asks and for what. From outside, anybody can
//! write those.

/// Headers that say who asks. They are for the gateway and go no further.
pub const CREDENTIALS: [&str; 5] =
    ["authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"];

/// The beginning of the gateway's own headers.
const OWN: &str = "x-flexinfer-";
/// Those of them that clients may send.
const PUBLIC: [&str; 2] = ["x-flexinfer-cache-key", "x-flexinfer-want-prefix-hit"];
/// What other gateways call the same.
const OTHERS: [&str; 9] = [
    "x-forwarded-user",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-remote-user",
    "x-tenant",
    "x-tenant-id",
    "x-gateway-destination-endpoint",
    "x-gateway-model-name",
];

/// Whether a header that came from outside is an internal one. `name` is in lower case; `_` counts as
/// `-`, since some engines cannot tell them apart.
pub fn is_internal(name: &str) -> bool {
    let same = |known: &str, name: &str| {
        known.len() == name.len()
            && known
                .bytes()
                .zip(name.bytes())
                .all(|(known, found)| known == found || (known == b'-' && found == b'_'))
    };
    if !matches!(name.as_bytes(), [b'x', b'-' | b'_', ..]) || PUBLIC.contains(&name) {
        return false;
    }
    name.get(..OWN.len()).is_some_and(|start| same(OWN, start))
        || OTHERS.iter().any(|known| same(known, name))
}

/// `query` without the parameters that carry a key, if it has any; `None` where it stays as it is.
pub fn without_key(query: &str) -> Option<String> {
    let carries = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        ["api_key", "api-key", "apikey"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let pairs = query.split('&');
    pairs
        .clone()
        .any(|pair| carries(&pair))
        .then(|| pairs.filter(|pair| !carries(pair)).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_08_internal_headers_are_known_in_every_spelling() {
        for name in [
            "x-flexinfer-cluster",
            "x_flexinfer_workload_class",
            "x-flexinfer_anything",
            "x-forwarded-user",
            "x_forwarded_user",
            "x-tenant-id",
            "x_flexinfer_cache_key",
        ] {
            assert!(is_internal(name), "{name}");
        }
        for name in [
            "x-flexinfer-cache-key",
            "x-model-id",
            "x-session-id",
            "x-request-id",
            "x-forwarded-for",
            "x-flexinfe",
            "content-type",
            "x",
            "xflexinfer",
        ] {
            assert!(!is_internal(name), "{name}");
        }
    }

    #[test]
    fn http_07_a_key_in_the_query_goes_no_further() {
        assert_eq!(without_key("a=1&api_key=K&b=2").as_deref(), Some("a=1&b=2"));
        assert_eq!(without_key("API-Key=K").as_deref(), Some(""));
        assert_eq!(without_key("a=api_key&b"), None);
    }
}
