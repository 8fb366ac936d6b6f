//! How many tokens a realtime session took, from the messages that its engine sends: every answer tells its own usage
//! at its end (`response.done`, `transcription.done`).

use std::mem;

use super::UsageReader;
use crate::openai::frames::{Frames, Part};

/// Of an engine that tells no usage, the end of every so many messages is told.
const EVERY: u64 = 32;

/// Adds up what a session tells.
#[derive(Debug)]
pub struct SessionUsage {
    frames: Frames,
    /// Reads the message that passes now.
    reader: UsageReader,
    told: u64,
    /// Messages since one has told: each is a token, or more.
    since: u64,
}

impl Default for SessionUsage {
    /// Nothing was said yet.
    fn default() -> Self {
        Self { frames: Frames::default(), reader: UsageReader::new(), told: 0, since: 0 }
    }
}

impl SessionUsage {
    /// The tokens so far: those that were told, and one for each message since.
    pub fn tokens(&self) -> u64 {
        self.told.saturating_add(self.since)
    }

    /// Looks at the next bytes. Where a message in them tells its usage, or is one of many that tell none: how many bytes
    /// behind their beginning the last such message ends.
    pub fn look(&mut self, bytes: &[u8]) -> Option<usize> {
        let Self { frames, reader, told, since } = self;
        let mut behind = None;
        frames.look(bytes, |part| match part {
            Part::Text(text) => reader.look(text),
            Part::Close => {}
            Part::End(end) => {
                let usage = mem::replace(reader, UsageReader::new()).usage;
                let tokens = [usage.prompt_tokens, usage.completion_tokens];
                if tokens == [None, None] {
                    *since += 1;
                    if since.is_multiple_of(EVERY) {
                        behind = Some(end);
                    }
                    return;
                }
                *told = tokens.into_iter().flatten().fold(*told, u64::saturating_add);
                *since = 0;
                behind = Some(end);
            }
        });
        behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::frames::last_words;

    #[test]
    fn every_answer_of_a_session_counts_however_it_is_cut() {
        let done = |input, output| {
            let event = format!(
                r#"{{"type":"response.done","response":{{"output":[],"usage":{{"total_tokens":1,"input_tokens":{input},"output_tokens":{output},"input_token_details":{{"text_tokens":9}}}}}}}}"#
            );
            text(event.as_bytes())
        };
        let delta = text(br#"{"type":"response.output_text.delta","delta":"\"usage\":{"}"#);
        let audio = [&[0x82, 5][..], b"usage"].concat();
        let parts = [delta.clone(), audio, done(30, 5), delta.clone(), done(40, 25), delta.clone()];
        let told = parts[..5].iter().map(Vec::len).sum::<usize>();
        let session = parts.concat();
        for size in [1, 5, 100, session.len()] {
            let (mut usage, mut last, mut before) = (SessionUsage::default(), 0, 0);
            for piece in session.chunks(size) {
                last = usage.look(piece).map_or(last, |behind| before + behind);
                before += piece.len();
            }
            assert_eq!((usage.tokens(), last), (101, told), "in pieces of {size}");
        }
        let mut silent = SessionUsage::default();
        assert_eq!(silent.look(&delta.repeat(7)), None);
        assert_eq!(silent.tokens(), 7, "of an engine that tells nothing each message counts");
        let told = (32 - 7) * delta.len();
        assert_eq!(silent.look(&delta.repeat(40)), Some(told), "and is told now and then");
    }

    fn text(event: &[u8]) -> Vec<u8> {
        let mut frames = last_words(event, 1000, "");
        // Without the end.
        frames.truncate(frames.len() - 4);
        frames
    }
}
