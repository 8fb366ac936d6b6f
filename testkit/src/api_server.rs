//! What an API server of Kubernetes says, for those that stand in for one.

use serde_json::{Value, json};

/// A refusal in its words: the code of the answer, and the body.
#[must_use]
pub fn refusal(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    });
    (code, status)
}
