//! What a request's method and path ask for: something of the gateway's own, or an API of a model's
//! engine. The table is `operations.rs`; names inside paths are cut out in `named.rs`.

mod named;
mod operations;
#[cfg(test)]
mod tests;

pub use operations::{ModelAt, OPERATIONS, Operation};

use crate::rejection::Rejection;

/// What a request asks for, as far as its method and path tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Whether the process lives.
    Health,
    /// Whether new requests should come here.
    Readiness,
    /// Which models there are.
    ModelsList,
    /// One model by name.
    ModelObject {
        /// The name, decoded once.
        name: String,
    },
    /// Something that an engine answers.
    Engine(EngineCall<'a>),
}

/// A call that goes to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCall<'a> {
    /// The model, if the path names it (`/model/<name>/…`), decoded once.
    pub model: Option<String>,
    /// The path that the engine gets, as it was received but for the model's prefix.
    pub path: &'a str,
    /// The operation at that path. `None` for a path that is in no table, which may go to the model
    /// that the path or `X-Model-ID` names and to no other: see [`unlisted`].
    pub operation: Option<&'static Operation>,
}

const READ_ONLY: &str = "GET, HEAD";

/// Understands `method` and `path` (without its query). `knows` says whether a model goes by a
/// name, which decides where a name with raw slashes ends: the longest known name wins.
pub fn understand<'a>(
    method: &str,
    path: &'a str,
    knows: impl Fn(&str) -> bool,
) -> Result<Asked<'a>, Rejection> {
    match path {
        "/healthz" | "/health" => return Ok(Asked::Health),
        "/readyz" => return Ok(Asked::Readiness),
        "/v1/models" => return read_only(method).map(|()| Asked::ModelsList),
        _ => {}
    }
    if let Some(name) = path.strip_prefix("/v1/models/").filter(|name| !name.is_empty()) {
        return read_only(method).map(|()| Asked::ModelObject { name: named::decoded(name) });
    }
    let (model, path) = match path.strip_prefix("/model/") {
        Some(rest) => {
            let (name, rest) = named::cut(rest, knows).ok_or_else(|| not_found(path))?;
            (Some(name), rest)
        }
        None => (None, path),
    };
    if named::has_dot_segment(path) {
        return Err(not_found(path));
    }
    let operation = operations::at(method, path)?;
    Ok(Asked::Engine(EngineCall { model, path, operation }))
}

/// The answer to a call whose path is in no table, when neither path nor header names a model. Its
/// body is not looked at: a path that nothing serves must not wake a model.
pub fn unlisted(method: &str, path: &str) -> Rejection {
    let without_body = matches!(method, "GET" | "HEAD" | "DELETE");
    if without_body && path.starts_with("/v1/") { Rejection::ModelMissing } else { not_found(path) }
}

fn not_found(path: &str) -> Rejection {
    Rejection::PathNotFound { path: path.to_owned(), nearest: operations::nearest(path) }
}

fn read_only(method: &str) -> Result<(), Rejection> {
    match method {
        "GET" | "HEAD" => Ok(()),
        _ => Err(Rejection::MethodNotAllowed { method: method.to_owned(), allow: READ_ONLY }),
    }
}
