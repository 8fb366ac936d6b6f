//! What the API server noted: who changed what. The claim that an idle cluster sees no write is checked here.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

/// A request that changed something, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The authenticated user, such as `system:serviceaccount:flexinfer:controller`.
    pub user: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The plural, with the subresource after a slash: `models/status`.
    pub resource: String,
    /// Empty for what lies in no namespace.
    pub namespace: String,
    /// Empty where the server chose the name.
    pub name: String,
    /// The status of the answer.
    pub status: u16,
}

const VERBS: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Every write in an audit log, oldest first. A last line that is still being written is left out.
pub(super) fn writes(log: &Path) -> io::Result<Vec<Write>> {
    let mut writes = Vec::new();
    for line in BufReader::new(File::open(log)?).lines() {
        let event: Option<Value> = serde_json::from_str(&line?).ok();
        writes.extend(event.as_ref().and_then(write));
    }
    Ok(writes)
}

fn write(event: &Value) -> Option<Write> {
    let text = |pointer| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let verb = VERBS.into_iter().find(|verb| *verb == text("/verb"))?;
    let resource = match text("/objectRef/subresource") {
        "" => text("/objectRef/resource").to_owned(),
        part => format!("{}/{part}", text("/objectRef/resource")),
    };
    let status = event.pointer("/responseStatus/code").and_then(Value::as_u64);
    Some(Write {
        user: text("/user/username").to_owned(),
        verb: verb.to_owned(),
        resource,
        namespace: text("/objectRef/namespace").to_owned(),
        name: text("/objectRef/name").to_owned(),
        status: status.and_then(|status| status.try_into().ok()).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(verb: &str) -> Value {
        json!({
            "verb": verb,
            "user": { "username": "admin" },
            "objectRef": {
                "resource": "models",
                "subresource": "status",
                "namespace": "default",
                "name": "llama",
            },
            "responseStatus": { "code": 200 },
        })
    }

    #[test]
    fn reading_is_no_write() {
        for verb in ["get", "list", "watch"] {
            assert_eq!(write(&event(verb)), None, "{verb}");
        }
    }

    #[test]
    fn a_write_tells_who_changed_what() {
        let write = write(&event("patch")).unwrap();
        assert_eq!((write.user.as_str(), write.status), ("admin", 200));
        assert_eq!(write.resource, "models/status");
    }

    #[test]
    fn a_line_cut_short_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        std::fs::write(&log, format!("{}\n{{\"verb\":\"pat", event("patch"))).unwrap();
        assert_eq!(writes(&log).unwrap().len(), 1);
    }
}
