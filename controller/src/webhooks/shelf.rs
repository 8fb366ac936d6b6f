//! What the Secret holds, which all controllers share: the edition in use, the one that follows, and the authority
//! before them, since another controller may still show for a moment what that signed.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

use super::edition::Edition;

/// The keys of an edition, as those of every TLS Secret.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";

/// Begins the keys of the edition that follows.
const FOLLOWS: &str = "next-";

/// The authority before the present one.
const BEFORE: &str = "previous-ca.crt";

/// The editions that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shelf {
    pub(super) present: Option<Edition>,
    pub(super) follows: Option<Edition>,
    before: Option<String>,
}

impl Shelf {
    /// As a Secret's data tells. What is not whole is not there.
    pub(super) fn read(data: Option<&BTreeMap<String, ByteString>>) -> Self {
        let text = |key: &str| {
            let bytes = &data?.get(key)?.0;
            std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let edition = |prefix: &str| {
            Some(Edition {
                authority: text(&format!("{prefix}{AUTHORITY}"))?,
                certificate: text(&format!("{prefix}{CERTIFICATE}"))?,
                key: text(&format!("{prefix}{KEY}"))?,
            })
        };
        Self { present: edition(""), follows: edition(FOLLOWS), before: text(BEFORE) }
    }

    /// As a Secret's data.
    pub(super) fn written(&self) -> BTreeMap<String, ByteString> {
        let mut data = BTreeMap::new();
        let mut put =
            |key: String, text: &str| data.insert(key, ByteString(text.as_bytes().to_vec()));
        for (prefix, edition) in [("", &self.present), (FOLLOWS, &self.follows)] {
            let Some(Edition { authority, certificate, key }) = edition else { continue };
            put(format!("{prefix}{AUTHORITY}"), authority);
            put(format!("{prefix}{CERTIFICATE}"), certificate);
            put(format!("{prefix}{KEY}"), key);
        }
        if let Some(before) = &self.before {
            put(BEFORE.to_owned(), before);
        }
        data
    }

    /// With `edition` in use at once.
    pub(super) fn begun(self, edition: Edition) -> Self {
        let before = self.present.map(|present| present.authority).or(self.before);
        Self { present: Some(edition), follows: None, before }
    }

    /// With `edition` as the one that follows.
    pub(super) fn prepared(self, edition: Edition) -> Self {
        Self { follows: Some(edition), ..self }
    }

    /// With the edition that follows in use.
    pub(super) fn promoted(self) -> Self {
        match self.follows.clone() {
            Some(follows) => self.begun(follows),
            None => self,
        }
    }

    /// Every authority that an API server shall trust, as one text of PEM.
    pub(super) fn bundle(&self) -> String {
        self.authorities().collect()
    }

    /// Whether who trusts `bundle` takes all that is or will be shown.
    pub(super) fn is_trusted_by(&self, bundle: &[u8]) -> bool {
        let bundle = std::str::from_utf8(bundle).unwrap_or_default();
        self.present.is_some() && self.authorities().all(|authority| bundle.contains(authority))
    }

    fn authorities(&self) -> impl Iterator<Item = &str> {
        let editions = [&self.present, &self.follows].into_iter().flatten();
        editions.map(|edition| edition.authority.as_str()).chain(self.before.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition(name: &str) -> Edition {
        let text = |part: &str| format!("{name} {part}\n");
        Edition { authority: text("authority"), certificate: text("certificate"), key: text("key") }
    }

    #[test]
    fn what_is_written_is_read() {
        let shelf = Shelf::default().begun(edition("one")).prepared(edition("two"));
        assert_eq!(Shelf::read(Some(&shelf.written())), shelf);
        let later = shelf.promoted().prepared(edition("three"));
        assert_eq!(Shelf::read(Some(&later.written())), later);
        assert_eq!(Shelf::read(None), Shelf::default());
    }

    #[test]
    fn an_edition_of_which_a_part_is_missing_is_none() {
        let mut data = Shelf::default().begun(edition("one")).written();
        data.remove(KEY);
        assert_eq!(Shelf::read(Some(&data)), Shelf::default());
    }

    #[test]
    fn the_authority_before_is_trusted_until_the_next_change() {
        let first = Shelf::default().begun(edition("one"));
        let changed = first.clone().prepared(edition("two"));
        assert!(!changed.is_trusted_by(first.bundle().as_bytes()));
        let bundle = changed.bundle();
        assert!(first.is_trusted_by(bundle.as_bytes()) && changed.is_trusted_by(bundle.as_bytes()));
        // Nothing has to be told when the one that follows is used: it is known, and so is the one before.
        let promoted = changed.promoted();
        assert!(promoted.is_trusted_by(bundle.as_bytes()));
        assert!(promoted.bundle().contains("one authority"));
        let third = promoted.prepared(edition("three")).promoted();
        assert!(!third.bundle().contains("one authority"));
    }

    #[test]
    fn nothing_is_trusted_where_there_is_nothing() {
        assert!(!Shelf::default().is_trusted_by(b""));
    }
}
