//! What is known of a key: its SHA-256. The key itself is nowhere in the gateway.

use std::fmt;
use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The SHA-256 of a key.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `key`.
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// The digest that 64 hexadecimal digits write down; `None` for any other text.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 2 * digest.len() {
            return None;
        }
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(digest))
    }
}

impl PartialEq for Digest {
    /// Takes the same time wherever the two begin to differ (SEC-01).
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Digest(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn sixty_four_digits_are_a_digest_in_either_case() {
        assert_eq!(Digest::from_hex(ABC), Some(Digest::of(b"abc")));
        assert_eq!(Digest::from_hex(&ABC.to_uppercase()), Some(Digest::of(b"abc")));
        for wrong in
            ["", "abc", &ABC[1..], &ABC.replace('b', "g"), &format!("{ABC}0"), &"é".repeat(32)]
        {
            assert_eq!(Digest::from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_digest_is_not_printed() {
        assert!(!format!("{:?}", Digest::of(b"abc")).contains("ba78"));
    }
}
