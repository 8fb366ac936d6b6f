//! Google Compute Engine, whose server signs every answer with a header.

use jiff::Timestamp;

use super::{Answer, Notice, Question, Reading, later, unclear};

/// From the notice to the end.
const NOTICE_SECONDS: i64 = 30;

const FLAVOR: (&str, &str) = ("metadata-flavor", "Google");

/// Asks who this is.
pub fn identity_question() -> Question {
    Question::get("/computeMetadata/v1/instance/id", FLAVOR.0, FLAVOR.1)
}

/// The answer is the id of a Google machine, signed as theirs.
pub fn is_identity(answer: &Answer) -> bool {
    let id = answer.body.trim();
    is_theirs(answer) && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// Asks for a notice.
pub fn notice_question() -> Question {
    Question::get("/computeMetadata/v1/instance/preempted", FLAVOR.0, FLAVOR.1)
}

/// Reads the answer. It has no time; the end comes 30 seconds after the first such answer.
pub fn notice(answer: &Answer, now: Timestamp) -> Reading {
    match answer.body.trim() {
        "FALSE" if is_theirs(answer) => Reading::Quiet,
        "TRUE" if is_theirs(answer) => Reading::Noticed(Notice::new(
            "Google preempts this machine",
            later(now, NOTICE_SECONDS),
        )),
        _ => unclear(answer),
    }
}

fn is_theirs(answer: &Answer) -> bool {
    answer.ok() && answer.header(FLAVOR.0) == Some(FLAVOR.1)
}
