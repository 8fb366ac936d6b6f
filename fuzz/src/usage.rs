//! What an answer tells of its usage does not depend on how it is cut, and of a stream only whole events
//! are taken out.

use flexinfer_core::limits::UsageEvents;
use flexinfer_core::openai::{Dialect, Usage, UsageReader};

use crate::cut;

pub(crate) fn check(input: &[u8]) {
    let (size, answer) = cut(input);
    for kind in ["text/event-stream", "application/json"] {
        for dialect in [Dialect::OpenAi, Dialect::Ollama] {
            let whole = read(answer, answer.len().max(1), kind, dialect);
            assert_eq!(whole, read(answer, size, kind, dialect), "{kind} in pieces of {size}");
        }
    }
    let whole = passed(answer, answer.len().max(1));
    assert_eq!(whole, passed(answer, size), "in pieces of {size}");
    assert!(is_without_pieces(answer, &whole), "something was changed");
}

fn read(answer: &[u8], size: usize, kind: &str, dialect: Dialect) -> Option<Usage> {
    let mut reader = UsageReader::for_answer(Some(kind), None)?.in_dialect(dialect);
    for piece in answer.chunks(size) {
        reader.look(piece);
    }
    Some(reader.usage().clone())
}

fn passed(answer: &[u8], size: usize) -> Vec<u8> {
    let mut events = UsageEvents::default();
    let mut passed = Vec::new();
    for piece in answer.chunks(size) {
        passed.extend_from_slice(&events.pass(piece, false));
    }
    passed.extend_from_slice(&events.pass(b"", true));
    passed
}

/// Whether `rest` is `whole` with nothing but pieces missing.
fn is_without_pieces(whole: &[u8], rest: &[u8]) -> bool {
    let mut left = rest.iter().peekable();
    for byte in whole {
        left.next_if(|next| *next == byte);
    }
    left.peek().is_none()
}
