//! What a registry wants before it answers: its `WWW-Authenticate` header, by RFC 9110 §11.

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token of the service at this address.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
    /// The login itself.
    Basic,
}

impl Challenge {
    /// The best of the challenges in these headers: a token before a login.
    pub(super) fn best<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut all = headers.flat_map(parse).collect::<Vec<_>>();
        let bearer = all.iter().position(|one| matches!(one, Self::Bearer { .. }));
        match bearer {
            Some(at) => Some(all.swap_remove(at)),
            None => all.pop(),
        }
    }
}

fn parse(header: &str) -> Vec<Challenge> {
    let mut found = Vec::new();
    let mut rest = header.trim_start_matches([',', ' ', '\t']);
    while !rest.is_empty() {
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        let (scheme, after) = rest.split_at(end);
        let (parameters, after) = parameters(after);
        let of = |name: &str| {
            let found = parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        if scheme.eq_ignore_ascii_case("bearer") {
            if let Some(realm) = of("realm") {
                let (service, scope) = (of("service"), of("scope"));
                found.push(Challenge::Bearer { realm, service, scope });
            }
        } else if scheme.eq_ignore_ascii_case("basic") {
            found.push(Challenge::Basic);
        }
        rest = after;
    }
    found
}

/// The parameters at the beginning of `text`, and what stands behind them: the next scheme, which is a word
/// without an equals sign.
fn parameters(text: &str) -> (Vec<(String, String)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let end = rest.find(['=', ' ', ',']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let Some(after) = after.trim_start().strip_prefix('=') else { return (found, rest) };
        let (value, after) = value(after.trim_start());
        found.push((name.to_owned(), value));
        rest = after;
    }
}

/// A quoted or bare value, and what stands behind it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find([',', ' ']).unwrap_or(text.len()));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            letter => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(headers: &[&str]) -> Option<Challenge> {
        Challenge::best(headers.iter().copied())
    }

    #[test]
    fn a_registry_says_where_a_token_is_had() {
        let wanted = |service: Option<&str>, scope: Option<&str>| {
            let [service, scope] = [service, scope].map(|text| text.map(str::to_owned));
            Some(Challenge::Bearer { realm: "https://auth.test/token".to_owned(), service, scope })
        };
        for (headers, expected) in [
            (
                &[
                    r#"Bearer realm="https://auth.test/token",service="reg",scope="repository:a/b:pull,push""#,
                ] as &[&str],
                wanted(Some("reg"), Some("repository:a/b:pull,push")),
            ),
            (&["bearer  Realm = https://auth.test/token , service="], wanted(None, None)),
            (&[r#"Basic realm="x", Bearer realm="https://auth.test/token""#], wanted(None, None)),
            (&["Basic", r#"Bearer realm="https:\//auth.test/token""#], wanted(None, None)),
            (&[r#"Basic realm="a, Bearer realm=b""#], Some(Challenge::Basic)),
            (&["basic"], Some(Challenge::Basic)),
            (&["Bearer service=x"], None),
            (&["Negotiate abc==, Digest realm=\"x"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(best(headers), expected, "{headers:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_it_panic_or_go_round(text in "[ -~ü]{0,60}") {
            let _ = best(&[&text]);
            let _ = best(&[&format!("Bearer realm={text}"), &format!("Basic realm=\"{text}")]);
        }
    }
}
