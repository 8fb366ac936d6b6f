//! Another prefix than ours, under which a node has its labels too: for what else reads them. Placement, benchmarks and
//! scheduling read ours.

use super::Texts;

/// A prefix of labels, such as `gpu.example.com/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPrefix(String);

/// A text that cannot be a label's prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot begin a label; write a domain in lower case and a slash, like `gpu.example.com/`"
)]
pub struct BadPrefix(pub String);

/// The prefix that `crds` writes its keys with.
const OURS: &str = "flexinfer.ai/";

impl LabelPrefix {
    /// `labels` with a copy of each under this prefix.
    pub fn copied(&self, labels: Texts) -> Texts {
        let own = |key: &str| Some(format!("{}{}", self.0, key.strip_prefix(OURS)?));
        let copies: Vec<_> =
            labels.iter().filter_map(|(key, value)| Some((own(key)?, value.clone()))).collect();
        labels.into_iter().chain(copies).collect()
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
