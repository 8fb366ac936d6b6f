//! How many tokens an answer took and why it ended, read from its bytes as they pass by, JSON and
//! event streams alike, cut anywhere. It only looks: bytes are never changed, held back or refused,
//! and an answer that cannot be understood (BODY-02) just counts as nothing.
//!
//! It looks for keys and not at whole documents, so that an event costs a search and not a parse,
//! and a 30 MB image no memory. Text inside a string cannot be taken for a key, since its quotes
//! are escaped; a key of that name elsewhere (a tool called `usage`) has no token counts in it.

mod counts;
mod session;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use memchr::memmem::Finder;

pub use session::SessionUsage;

use super::Dialect;
use super::content_type::JSON;

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

/// Whether an answer of this content type can have usage.
fn readable(content_type: &str) -> bool {
    // Nearly all that are no stream say this and no more.
    content_type == JSON || {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let kinds = [JSON, "text/event-stream", "application/x-ndjson"];
        kinds.iter().any(|readable| kind.eq_ignore_ascii_case(readable))
    }
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
    finders: &'static Finders,
}

/// The search for each key that tells something in one dialect.
type Finders = [(Key, Finder<'static>); 3];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Usage,
    FinishReason,
    StopReason,
    /// Ollama's tokens of the request.
    PromptEvalCount,
    /// Ollama's tokens of the answer.
    EvalCount,
    /// Ollama's reason.
    DoneReason,
}

impl Key {
    const ALL: [Self; 3] = [Self::Usage, Self::FinishReason, Self::StopReason];
    const OF_OLLAMA: [Self; 3] = [Self::PromptEvalCount, Self::EvalCount, Self::DoneReason];

    const fn text(self) -> &'static [u8] {
        match self {
            Self::Usage => b"\"usage\"",
            Self::FinishReason => b"\"finish_reason\"",
            Self::StopReason => b"\"stop_reason\"",
            Self::PromptEvalCount => b"\"prompt_eval_count\"",
            Self::EvalCount => b"\"eval_count\"",
            Self::DoneReason => b"\"done_reason\"",
        }
    }
}

/// Made once: preparing a search costs more than searching a short answer.
static FINDERS: LazyLock<Finders> = LazyLock::new(|| finders(Key::ALL));
static FINDERS_OF_OLLAMA: LazyLock<Finders> = LazyLock::new(|| finders(Key::OF_OLLAMA));

fn finders(keys: [Key; 3]) -> Finders {
    keys.map(|key| (key, Finder::new(key.text())))
}

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
        let readable = content_type.is_some_and(readable);
        let plain = content_encoding.is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
        (readable && plain).then(Self::new)
    }

    fn new() -> Self {
        Self { usage: Usage::default(), finished: false, pending: Vec::new(), finders: &FINDERS }
    }

    /// The same for an answer of another dialect than OpenAI's. Anthropic's is read like OpenAI's.
    #[must_use]
    pub fn in_dialect(self, dialect: Dialect) -> Self {
        match dialect {
            Dialect::Ollama => Self { finders: &FINDERS_OF_OLLAMA, ..self },
            _ => self,
        }
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
        // Where each key comes next: each is looked for again only where it was found.
        let mut ahead =
            self.finders.each_ref().map(|(key, finder)| (finder.find(bytes), *key, finder));
        let mut done = 0;
        while let Some((place, key, finder)) =
            ahead.iter_mut().filter(|(place, ..)| place.is_some()).min_by_key(|(place, ..)| *place)
        {
            let at = place.unwrap_or_default();
            // A quote that ends one key does not begin another, wherever the answer is cut.
            if at >= done {
                let after = at + key.text().len();
                match self.read(*key, bytes.get(after..).unwrap_or_default()) {
                    Found::Unfinished if bytes.len() - at <= LONGEST_VALUE => return at,
                    Found::Unfinished | Found::Settled => done = after,
                }
            }
            let next = finder.find(bytes.get(done..).unwrap_or_default());
            *place = next.map(|distance| done + distance);
        }
        bytes.len() - self.begun_key(bytes.get(done..).unwrap_or_default())
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
            (Key::FinishReason | Key::StopReason | Key::DoneReason, Some(b'"')) => {
                self.read_reason(key, value)
            }
            (Key::PromptEvalCount | Key::EvalCount, Some(b'0'..=b'9')) => {
                self.read_count(key, value)
            }
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

    fn read_count(&mut self, key: Key, value: &[u8]) -> Found {
        let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == value.len() {
            return Found::Unfinished;
        }
        let text = value.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
        let count = text.and_then(|text| text.parse().ok());
        match key {
            Key::PromptEvalCount => self.usage.prompt_tokens = count,
            _ => self.usage.completion_tokens = count,
        }
        Found::Settled
    }

    fn read_reason(&mut self, key: Key, value: &[u8]) -> Found {
        let word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let content = value.get(1..).unwrap_or_default();
        let length = content.iter().take(LONGEST_REASON).take_while(word).count();
        let reason = content.get(..length).and_then(|reason| std::str::from_utf8(reason).ok());
        match content.get(length) {
            None => return Found::Unfinished,
            Some(b'"') if key != Key::StopReason || !self.finished => {
                self.finished |= key == Key::FinishReason;
                self.usage.finish_reason = reason.map(str::to_owned);
            }
            Some(_) => {}
        }
        Found::Settled
    }

    /// How many of the last bytes may be the beginning of a key, which has one quote only: its first.
    fn begun_key(&self, bytes: &[u8]) -> usize {
        let keys = || self.finders.iter().map(|(key, _)| key.text());
        let longest = keys().map(|key| key.len() - 1).max().unwrap_or_default();
        let tail = bytes.get(bytes.len().saturating_sub(longest)..).unwrap_or_default();
        let quote = tail.iter().rposition(|byte| *byte == b'"');
        let begun = quote.and_then(|quote| tail.get(quote..)).unwrap_or_default();
        if keys().any(|key| key.starts_with(begun)) { begun.len() } else { 0 }
    }
}
