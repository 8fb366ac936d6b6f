//! The question and the answer of a webhook, as `admission.k8s.io/v1` writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::backends::Complaint;

/// What was asked is no question.
#[derive(Debug, thiserror::Error)]
#[error("this is no AdmissionReview with a request: {0}")]
pub struct BadReview(#[from] serde_json::Error);

/// What the API server asks about.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    uid: String,
    pub(super) kind: Kind,
    pub(super) operation: Operation,
    #[serde(default)]
    name: String,
    /// The object as it shall be; null where it goes.
    #[serde(default)]
    pub(super) object: Value,
    /// The object as it is; null where there is none yet.
    #[serde(default)]
    pub(super) old_object: Value,
}

/// The kind of the object.
#[derive(Debug, Deserialize)]
pub(super) struct Kind {
    group: String,
    pub(super) kind: String,
}

/// What shall be done with the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Question {
    /// Reads the body of a request.
    pub(super) fn read(body: &[u8]) -> Result<Self, BadReview> {
        #[derive(Deserialize)]
        struct Review {
            request: Question,
        }
        Ok(serde_json::from_slice::<Review>(body)?.request)
    }

    /// Whether the object is only waiting for its finalizers.
    pub(super) fn is_leaving(&self) -> bool {
        let marked = self.object.pointer("/metadata/deletionTimestamp");
        marked.is_some_and(|marked| !marked.is_null())
    }

    /// The object may be stored.
    pub(super) fn allowed(&self, warnings: &[String]) -> Value {
        self.answer(json!({ "allowed": true, "warnings": warnings }))
    }

    /// The object may be stored once `patch` (RFC 6902) has been applied.
    pub(super) fn patched(&self, patch: &[Value]) -> Value {
        if patch.is_empty() {
            return self.allowed(&[]);
        }
        let patch = STANDARD.encode(Value::from(patch.to_vec()).to_string());
        self.answer(json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }))
    }

    /// The object may not be stored, for each of these reasons.
    pub(super) fn refused(&self, complaints: &[Complaint], warnings: &[String]) -> Value {
        let messages: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        let cause = |complaint: &Complaint| {
            json!({
                "reason": "FieldValueInvalid",
                "field": complaint.field,
                "message": complaint.message,
            })
        };
        let causes: Vec<Value> = complaints.iter().map(cause).collect();
        let Kind { group, kind } = &self.kind;
        self.answer(json!({
            "allowed": false,
            "warnings": warnings,
            "status": {
                "status": "Failure",
                "code": 422,
                "reason": "Invalid",
                "message": messages.join("; "),
                "details": { "name": self.name, "group": group, "kind": kind, "causes": causes },
            },
        }))
    }

    fn answer(&self, mut response: Value) -> Value {
        if let Some(response) = response.as_object_mut() {
            response.insert("uid".to_owned(), self.uid.as_str().into());
        }
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        })
    }
}
