//! Amazon EC2: IMDSv2, whose every question carries a token that expires.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::{Answer, Notice, Question, Reading, later, unclear};

/// How long a token is asked for.
pub const TOKEN_LIFE: Duration = Duration::from_secs(300);

/// The notice that EC2 promises, for an answer without a time.
const NOTICE_SECONDS: i64 = 120;

const TOKEN: &str = "x-aws-ec2-metadata-token";

/// Asks for a token.
pub fn token_question() -> Question {
    let life = TOKEN_LIFE.as_secs().to_string();
    let header = "x-aws-ec2-metadata-token-ttl-seconds";
    Question { method: "PUT", path: "/latest/api/token", headers: vec![(header, life)] }
}

/// The token, if this is one. Pages of other servers have blanks or markup in them.
pub fn token(answer: &Answer) -> Option<&str> {
    let token = answer.body.trim();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    (answer.ok() && (20..=200).contains(&token.len()) && token.bytes().all(fits)).then_some(token)
}

/// Asks who this is.
pub fn identity_question(token: &str) -> Question {
    Question::get("/latest/meta-data/instance-id", TOKEN, token)
}

/// The answer is the id of an EC2 instance. Only with [`token`] does it mean EC2: OpenStack answers alike.
pub fn is_identity(answer: &Answer) -> bool {
    let digits = answer.body.trim().strip_prefix("i-").unwrap_or_default();
    answer.ok()
        && (8..=17).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Asks for a notice.
pub fn notice_question(token: &str) -> Question {
    Question::get("/latest/meta-data/spot/instance-action", TOKEN, token)
}

#[derive(Deserialize)]
struct Action {
    action: String,
    time: Option<Timestamp>,
}

/// Reads the answer: 404 while nothing is to happen.
pub fn notice(answer: &Answer, now: Timestamp) -> Reading {
    match answer.status {
        404 => Reading::Quiet,
        401 => Reading::TokenRefused,
        200 => match serde_json::from_str::<Action>(&answer.body) {
            Ok(Action { action, time })
                if ["terminate", "stop", "hibernate"].contains(&action.as_str()) =>
            {
                let at = time.unwrap_or_else(|| later(now, NOTICE_SECONDS));
                Reading::Noticed(Notice::new(format!("EC2 will {action} this spot instance"), at))
            }
            _ => unclear(answer),
        },
        _ => unclear(answer),
    }
}
