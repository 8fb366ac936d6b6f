//! Where a request carries its caller's key. One rule for all carriers: blanks around a key do not
//! count, an empty key is no key, and a request that carries two different keys has none that counts.

use strum::IntoEnumIterator as _;

/// The longest key that is looked at, in bytes.
pub const LONGEST_KEY: usize = 1024;

/// What a browser, which cannot set headers on a WebSocket, puts before its key in a subprotocol's name.
pub const SUBPROTOCOL: &str = "openai-insecure-api-key.";

/// A header that may carry a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum Carrier {
    /// `Authorization: Bearer <key>`; any other scheme is no key.
    Authorization,
    /// `x-api-key: <key>`, as Anthropic's clients send it.
    XApiKey,
    /// `api-key: <key>`, as Azure's clients send it.
    ApiKey,
    /// One of the names in `Sec-WebSocket-Protocol`, see [`SUBPROTOCOL`].
    WebSocketProtocol,
}

impl Carrier {
    /// The one whose header is called `name`, in lower case.
    pub fn of(name: &str) -> Option<Self> {
        Self::iter().find(|carrier| carrier.header() == name)
    }

    /// The header's name, in lower case.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Authorization => "authorization",
            Self::XApiKey => "x-api-key",
            Self::ApiKey => "api-key",
            Self::WebSocketProtocol => "sec-websocket-protocol",
        }
    }

    /// The key in a value of this header.
    fn key(self, value: &[u8]) -> Option<&[u8]> {
        let key = match self {
            Self::Authorization => bearer(value)?,
            Self::XApiKey | Self::ApiKey => value,
            Self::WebSocketProtocol => value
                .split(|byte| *byte == b',')
                .find_map(|name| name.trim_ascii().strip_prefix(SUBPROTOCOL.as_bytes()))?,
        };
        Some(key.trim_ascii()).filter(|key| !key.is_empty())
    }
}

/// What a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presented<'a> {
    /// No key.
    Nothing,
    /// One key.
    Key(&'a [u8]),
    /// Two `Authorization` headers, or two keys that differ.
    Conflict,
}

impl<'a> Presented<'a> {
    /// What the headers say that may carry a key, each with its carrier.
    pub fn by(values: impl IntoIterator<Item = (Carrier, &'a [u8])>) -> Self {
        let mut presented = Self::Nothing;
        let mut authorizations = 0;
        for (carrier, value) in values {
            authorizations += u32::from(carrier == Carrier::Authorization);
            if authorizations > 1 {
                return Self::Conflict;
            }
            let Some(key) = carrier.key(value) else { continue };
            match presented {
                Self::Key(first) if first != key => return Self::Conflict,
                _ => presented = Self::Key(key),
            }
        }
        presented
    }
}

/// What follows the scheme `Bearer`, whose letters may be of any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer";
    let (scheme, key) = value.trim_ascii_start().split_at_checked(SCHEME.len())?;
    let blank = key.first().is_some_and(u8::is_ascii_whitespace);
    (blank && scheme.eq_ignore_ascii_case(SCHEME)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorization(value: &str) -> Presented<'_> {
        Presented::by([(Carrier::Authorization, value.as_bytes())])
    }

    #[test]
    fn sec_01_the_scheme_may_be_of_any_case_and_blanks_do_not_count() {
        for value in ["Bearer k", "bearer k", "BEARER k", "Bearer  k", "Bearer k ", " Bearer\tk"] {
            assert_eq!(authorization(value), Presented::Key(b"k"), "{value:?}");
        }
        for value in ["", "k", "Bearer", "Bearer ", "Bearerk", "Basic k", "Token k"] {
            assert_eq!(authorization(value), Presented::Nothing, "{value:?}");
        }
    }

    #[test]
    fn every_carrier_carries_a_key() {
        let alone = |carrier, value: &'static str| Presented::by([(carrier, value.as_bytes())]);
        assert_eq!(alone(Carrier::XApiKey, " k "), Presented::Key(b"k"));
        assert_eq!(alone(Carrier::ApiKey, "k"), Presented::Key(b"k"));
        let names = "realtime, openai-insecure-api-key.k, openai-beta.realtime-v1";
        assert_eq!(alone(Carrier::WebSocketProtocol, names), Presented::Key(b"k"));
        assert_eq!(alone(Carrier::WebSocketProtocol, "realtime"), Presented::Nothing);
        assert_eq!(alone(Carrier::XApiKey, "  "), Presented::Nothing);
    }

    #[test]
    fn sec_01_two_keys_are_none() {
        let (bearer, other) = (b"Bearer k".as_slice(), b"Basic x".as_slice());
        let two = |second| [(Carrier::Authorization, bearer), (Carrier::Authorization, second)];
        assert_eq!(Presented::by(two(bearer)), Presented::Conflict);
        assert_eq!(Presented::by(two(other)), Presented::Conflict);
        let beside = |key| [(Carrier::Authorization, bearer), (Carrier::XApiKey, key)];
        assert_eq!(Presented::by(beside(b"other")), Presented::Conflict);
        assert_eq!(Presented::by(beside(b"k")), Presented::Key(b"k"));
    }
}
