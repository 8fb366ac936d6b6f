//! The prefix of the labels, which an operator changes where another labeler uses the same.

/// A prefix of labels, such as `flexinfer.ai/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPrefix(String);

/// A text that cannot be a label's prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot begin a label; write a domain in lower case and a slash, like `flexinfer.ai/`"
)]
pub struct BadPrefix(pub String);

/// The prefix that `crds` writes its keys with.
const OURS: &str = "flexinfer.ai/";

impl Default for LabelPrefix {
    fn default() -> Self {
        Self(OURS.to_owned())
    }
}

impl LabelPrefix {
    /// `key` of `flexinfer_crds::keys` under this prefix.
    pub(in crate::hardware) fn key(&self, key: &str) -> String {
        format!("{}{}", self.0, key.strip_prefix(OURS).unwrap_or(key))
    }
}

impl std::str::FromStr for LabelPrefix {
    type Err = BadPrefix;

    /// A slash at the end may be left out.
    fn from_str(text: &str) -> Result<Self, BadPrefix> {
        let domain = text.strip_suffix('/').unwrap_or(text);
        let part_fits = |part: &str| {
            let bytes = part.as_bytes();
            let ends_fit =
                [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(|end| *end != b'-'));
            ends_fit && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        };
        let fits = domain.len() <= 253 && domain.split('.').all(part_fits);
        if fits { Ok(Self(format!("{domain}/"))) } else { Err(BadPrefix(text.to_owned())) }
    }
}
