//! Graphs that are not taken, told in ComfyUI's shape.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::apis::refusal::Refusal;

/// Why a graph is not taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refused {
    /// As any other request.
    Plain(Refusal),
    /// The graph itself will not do.
    Graph {
        kind: &'static str,
        message: &'static str,
        details: String,
        /// What is wrong with which node.
        nodes: Value,
    },
}

impl Refused {
    pub(super) fn graph(kind: &'static str, message: &'static str, details: &str) -> Self {
        Self::Graph { kind, message, details: details.to_owned(), nodes: json!({}) }
    }

    /// A node that names a picture which is not there.
    pub(super) fn picture_missing(node: &str, class: &str, image: &str) -> Self {
        let error = json!({
            "type": "custom_validation_failed",
            "message": "Custom validation failed for node",
            "details": format!("image - Invalid image file: {image}"),
            "extra_info": {"input_name": "image", "received_value": image},
        });
        let told = json!({"errors": [error], "dependent_outputs": [], "class_type": class});
        Self::Graph {
            kind: "prompt_outputs_failed_validation",
            message: "Prompt outputs failed validation",
            details: String::new(),
            nodes: json!({ node: told }),
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::Plain(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Plain(refusal) => refusal.into_response(),
            Self::Graph { kind, message, details, nodes } => {
                let error = json!({"type": kind, "message": message, "details": details,
                                   "extra_info": {}});
                let body = json!({"error": error, "node_errors": nodes});
                let json = [(header::CONTENT_TYPE, "application/json")];
                (StatusCode::BAD_REQUEST, json, body.to_string()).into_response()
            }
        }
    }
}
