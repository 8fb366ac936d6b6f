//! How many tokens an answer took and why it ended, read from its bytes as they pass by, JSON and
//! event streams alike, cut anywhere. It only looks: bytes are never changed, held back or refused,
//! and an answer that cannot be understood (BODY-02) just counts as nothing.
//!
//! It looks for keys and not at whole documents, so that an event costs a search and not a parse,
//! and a 30 MB image no memory. Text inside a string cannot be taken for a key, since its quotes
//! are escaped; a key of that name elsewhere (a tool called `usage`) has no token counts in it.

mod counts;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The most bytes of a key and its value that are waited for.
const LONGEST_VALUE: usize = 4 * 1024;
/// The longest reason that is believed, in bytes.
const LONGEST_REASON: usize = 32;

/// What an answer has said of itself so far. What it has not said is unknown, and not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    pub completion_tokens: Option<u64>,
    /// Tokens of the request that the engine had in its cache.
    pub cached_tokens: Option<u64>,
    /// Why the answer ended, such as `stop` or `length`; of several choices, the last one's.
    pub finish_reason: Option<String>,
}

/// Reads the usage out of one answer.
#[derive(Debug)]
pub struct UsageReader {
    usage: Usage,
    /// Whether `finish_reason` was seen, so that `stop_reason` is something else (vLLM's is the
    /// text that ended the answer).
    finished: bool,
    /// What may be the beginning of a key, or a key and the beginning of its value.
    pending: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Usage,
    FinishReason,
    StopReason,
}

impl Key {
    const ALL: [Self; 3] = [Self::Usage, Self::FinishReason, Self::StopReason];

    const fn text(self) -> &'static [u8] {
        match self {
            Self::Usage => b"\"usage\"",
            Self::FinishReason => b"\"finish_reason\"",
            Self::StopReason => b"\"stop_reason\"",
        }
    }
}

/// Made once: preparing a search costs more than searching a short answer.
static FINDERS: LazyLock<[(Key, Finder<'static>); 3]> =
    LazyLock::new(|| Key::ALL.map(|key| (key, Finder::new(key.text()))));

/// What became of a key that was found.
enum Found {
    /// It was read, or it is not what it looks like.
    Settled,
    /// More bytes have to arrive to tell.
    Unfinished,
}

impl UsageReader {
    /// A reader for an answer with these headers; `None` for answers that have no usage to be read:
    /// images, sound, anything compressed.
    pub fn for_answer(content_type: Option<&str>, content_encoding: Option<&str>) -> Option<Self> {
        let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let readable = ["application/json", "text/event-stream"];
        let readable = readable.iter().any(|readable| kind.eq_ignore_ascii_case(readable));
        let plain = content_encoding.is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
        (readable && plain).then(|| Self {
            usage: Usage::default(),
            finished: false,
            pending: Vec::new(),
        })
    }

    /// What was read so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Looks at the next bytes of the answer.
    pub fn look(&mut self, bytes: &[u8]) {
        if self.pending.is_empty() {
            let used = self.scan(bytes);
            self.pending.extend_from_slice(bytes.get(used..).unwrap_or_default());
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(bytes);
            let used = self.scan(&pending);
            pending.drain(..used);
            self.pending = pending;
        }
    }

    /// Reads what is whole in `bytes`, and says how many of them are done with.
    fn scan(&mut self, bytes: &[u8]) -> usize {
        let mut from = 0;
        loop {
            let rest = bytes.get(from..).unwrap_or_default();
            let Some((at, key)) = Self::next_key(rest) else {
                return bytes.len() - begun_key(rest);
            };
            let after_key = at + key.text().len();
            match self.read(key, rest.get(after_key..).unwrap_or_default()) {
                Found::Unfinished if rest.len() - at <= LONGEST_VALUE => return from + at,
                Found::Unfinished | Found::Settled => from += after_key,
            }
        }
    }

    fn next_key(bytes: &[u8]) -> Option<(usize, Key)> {
        let find = |(key, finder): &(Key, Finder<'_>)| finder.find(bytes).map(|at| (at, *key));
        FINDERS.iter().filter_map(find).min_by_key(|(at, _)| *at)
    }

    /// Reads the value of `key` from the bytes behind it.
    fn read(&mut self, key: Key, behind: &[u8]) -> Found {
        let value = match behind.trim_ascii_start().split_first() {
            Some((b':', value)) => value.trim_ascii_start(),
            Some(_) => return Found::Settled,
            None => return Found::Unfinished,
        };
        match (key, value.first()) {
            (_, None) => Found::Unfinished,
            (Key::Usage, Some(b'{')) => self.read_counts(value),
            (Key::FinishReason | Key::StopReason, Some(b'"')) => self.read_reason(key, value),
            _ => Found::Settled,
        }
    }

    fn read_counts(&mut self, value: &[u8]) -> Found {
        match counts::read(value) {
            Ok(counts) => {
                let usage = &mut self.usage;
                usage.prompt_tokens = counts.prompt.or(usage.prompt_tokens);
                usage.completion_tokens = counts.completion.or(usage.completion_tokens);
                usage.cached_tokens = counts.cached.or(usage.cached_tokens);
                Found::Settled
            }
            Err(error) if error.is_eof() => Found::Unfinished,
            Err(_) => Found::Settled,
        }
    }

    fn read_reason(&mut self, key: Key, value: &[u8]) -> Found {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let content = value.get(1..).unwrap_or_default();
        let reason: String = content
            .iter()
            .take(LONGEST_REASON)
            .take_while(|byte| word(byte))
            .map(|byte| char::from(*byte))
            .collect();
        match content.get(reason.len()) {
            None => return Found::Unfinished,
            Some(b'"') if key == Key::FinishReason || !self.finished => {
                self.finished |= key == Key::FinishReason;
                self.usage.finish_reason = Some(reason);
            }
            Some(_) => {}
        }
        Found::Settled
    }
}

/// How many of the last bytes may be the beginning of a key.
fn begun_key(bytes: &[u8]) -> usize {
    let begins = |length: &usize| {
        let tail = bytes.get(bytes.len() - length..).unwrap_or_default();
        Key::ALL.iter().any(|key| key.text().starts_with(tail))
    };
    let longest = Key::ALL.iter().map(|key| key.text().len() - 1).max().unwrap_or_default();
    (1..=longest.min(bytes.len())).rev().find(begins).unwrap_or_default()
}
