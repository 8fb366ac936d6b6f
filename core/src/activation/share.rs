//! How much of something has come: as a pod that fetches or copies weights says it, and as people read it.

use serde::Deserialize;

/// The longest answer that is looked at, in bytes: ten times what one is.
const LONGEST: usize = 512;

/// Bytes that have come, of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// Those that have come; never more than all.
    #[serde(rename = "doneBytes")]
    pub done: u64,
    /// All.
    #[serde(rename = "totalBytes")]
    pub total: u64,
}

impl Share {
    /// `done` of `total`; `None` while it is not known how much there is, or where more has come than there is.
    pub fn new(done: u64, total: u64) -> Option<Self> {
        let countable = i64::try_from(total).is_ok_and(|total| total > 0);
        (countable && done <= total).then_some(Self { done, total })
    }

    /// What a pod's answer says. Whoever answers is not trusted: what makes no sense says nothing.
    pub fn parse(answer: &[u8]) -> Option<Self> {
        if answer.len() > LONGEST {
            return None;
        }
        let Self { done, total } = serde_json::from_slice(answer).ok()?;
        Self::new(done, total)
    }

    /// Whole percent; a hundred only when all has come.
    pub fn percent(self) -> u8 {
        let percent = u128::from(self.done) * 100 / u128::from(self.total.max(1));
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

/// An answer that [`Share::parse`] understands.
impl From<Share> for Vec<u8> {
    fn from(share: Share) -> Self {
        format!("{{\"doneBytes\":{},\"totalBytes\":{}}}", share.done, share.total).into_bytes()
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {}", bytes_in_words(self.done), bytes_in_words(self.total))
    }
}

/// Bytes as people read them: `12.4 GiB`.
pub fn bytes_in_words(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, unit) in UNITS {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(bytes_in_words(bytes), text);
        }
        assert_eq!(Share::new(1 << 30, 5 << 30).unwrap().to_string(), "1.0 GiB of 5.0 GiB");
    }

    #[test]
    fn what_is_answered_is_understood() {
        let share = Share::new(7, 10).unwrap();
        assert_eq!(Share::parse(&Vec::from(share)), Some(share));
        assert_eq!((share.percent(), Share::new(10, 10).unwrap().percent()), (70, 100));
        let more = br#"{"totalBytes": 10, "doneBytes": 7, "files": 3}"#;
        assert_eq!(Share::parse(more), Some(share), "somebody may say more");
    }

    #[test]
    fn an_answer_that_makes_no_sense_says_nothing() {
        let long = format!(r#"{{"doneBytes":1,"totalBytes":2,"x":"{}"}}"#, "y".repeat(LONGEST));
        for answer in [
            "",
            "12 of 40",
            r#"{"doneBytes":1}"#,
            r#"{"doneBytes":-1,"totalBytes":2}"#,
            r#"{"doneBytes":3,"totalBytes":2}"#,
            r#"{"doneBytes":0,"totalBytes":0}"#,
            r#"{"doneBytes":1.5,"totalBytes":2}"#,
            r#"{"doneBytes":1,"totalBytes":9223372036854775808}"#,
            &long,
        ] {
            assert_eq!(Share::parse(answer.as_bytes()), None, "{answer}");
        }
    }
}
