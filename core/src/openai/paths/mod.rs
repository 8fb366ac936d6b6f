//! What a request's method and path ask for: something of the gateway's own, or an API of a model's
//! engine. The table is `apis.rs`; names inside paths are cut out in `named.rs`.

mod named;
mod nearest;
#[cfg(test)]
mod tests;

use super::Dialect;
use super::apis::{OPERATIONS, OWN, Operation, Own, Page, READ, Streams};
use crate::rejection::Rejection;

/// What a request asks for, as far as its method and path tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Something that the gateway answers; `name` is the model that the path names, decoded once.
    Page { page: Page, name: String },
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
    /// The operation at that path, if it is one.
    pub operation: Option<&'static Operation>,
    /// Whether the path itself is in the table. Any other may go to the model that the path or
    /// `X-Model-ID` names and to no other: see [`unlisted`].
    pub listed: bool,
}

/// Where a path leads, whatever the method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    model: Option<String>,
    path: &'a str,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Own(&'static Own),
    Operation(&'static Operation),
    /// An operation as engines offer it beside the listed path, without `/v1`: it has the same rules.
    Beside(&'static Operation),
    /// An operation's path in another spelling, which some engines take for it.
    Misspelled(&'static Operation),
    Unlisted,
    /// A model's prefix without a name, or a path that leads out of it.
    Nowhere,
}

/// Finds `path` (without its query) in the table. `knows` says whether a model goes by a name, which
/// decides where a name with raw slashes ends: the longest known name wins.
pub fn locate(path: &str, knows: impl Fn(&str) -> bool) -> Place<'_> {
    let Some(rest) = path.strip_prefix("/model/") else {
        if let Some(own) = OWN.iter().find(|own| leads_to_own(own, path)) {
            return Place { model: None, path, at: At::Own(own) };
        }
        return Place { model: None, path, at: engines(path) };
    };
    let listed = |path: &str| matches!(engines(path), At::Operation(_));
    match named::cut(rest, knows, listed) {
        Some((name, path)) => Place { model: Some(name), path, at: engines(path) },
        None => Place { model: None, path, at: At::Nowhere },
    }
}

/// The operation of an engine at `path`, which begins with `/`.
fn engines(path: &str) -> At {
    if let Some(operation) = listed(path) {
        return At::Operation(operation);
    }
    if named::has_dot_segment(path) {
        return At::Nowhere;
    }
    let plain = named::plain(path);
    if let Some(operation) = plain.as_deref().and_then(listed) {
        return At::Misspelled(operation);
    }
    let beside = |path: &str| listed(&format!("/v1{path}")).filter(|found| found.makes_text());
    match (beside(path), plain.as_deref().and_then(beside)) {
        (Some(operation), _) => At::Beside(operation),
        (None, Some(operation)) => At::Misspelled(operation),
        (None, None) => At::Unlisted,
    }
}

fn listed(path: &str) -> Option<&'static Operation> {
    let exact = OPERATIONS.iter().find(|operation| operation.path == path);
    exact.or_else(|| OPERATIONS.iter().find(|operation| fits(operation.path, path)))
}

fn leads_to_own(own: &Own, path: &str) -> bool {
    // It stands at the end, where it is found by a look.
    let start = own.path.ends_with('}').then(|| own.path.split_once('{')).flatten();
    match start {
        Some((start, _)) => path.strip_prefix(start).is_some_and(|rest| !rest.is_empty()),
        None => own.path == path,
    }
}

/// Whether `path` is the table's `pattern`, with one part for `{…}`.
fn fits(pattern: &str, path: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('{') else { return pattern == path };
    let end = rest.split_once('}').map_or("", |(_, end)| end);
    let part = path.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    part.is_some_and(|part| {
        !part.is_empty() && !part.contains('/') && !named::has_dot_segment(part)
    })
}

impl<'a> Place<'a> {
    /// In whose words whoever asks here is answered.
    pub fn dialect(&self) -> Dialect {
        match self.at {
            At::Own(own) => own.dialect,
            At::Operation(operation) | At::Beside(operation) | At::Misspelled(operation) => {
                operation.dialect()
            }
            At::Unlisted | At::Nowhere => Dialect::guessed(self.path),
        }
    }

    /// Whether the gateway answers here itself.
    pub fn is_own(&self) -> bool {
        matches!(self.at, At::Own(_))
    }

    /// What `method` asks for here.
    pub fn asked(self, method: &str) -> Result<Asked<'a>, Rejection> {
        let operation = match self.at {
            At::Nowhere => return Err(not_found(self.path)),
            At::Own(own) => {
                allowed(method, own.methods)?;
                return Ok(Asked::Page { page: own.page, name: name_at(own, self.path) });
            }
            At::Misspelled(operation) => {
                let nearest = Some(operation.path).filter(|path| !path.contains('{'));
                return Err(Rejection::PathNotFound { path: self.path.to_owned(), nearest });
            }
            At::Operation(operation) => match allowed(method, operation.methods) {
                // Pages of one engine are read at paths that are another's API. HEAD is what GET is: no page where
                // that is a WebSocket.
                Err(_) if self.model.is_some() && allowed(method, READ).is_ok() => {
                    Some(operation).filter(|operation| operation.streams == Streams::Upgraded)
                }
                found => found.map(|()| Some(operation))?,
            },
            At::Beside(operation) => {
                allowed(method, operation.methods).is_ok().then_some(operation)
            }
            At::Unlisted => None,
        };
        let listed = operation.is_some() && matches!(self.at, At::Operation(_));
        Ok(Asked::Engine(EngineCall { model: self.model, path: self.path, operation, listed }))
    }
}

/// What stands in `path` where the table has `{…}`.
fn name_at(own: &Own, path: &str) -> String {
    let start = own.path.split_once('{').map(|(start, _)| start);
    start.and_then(|start| path.strip_prefix(start)).map(named::decoded).unwrap_or_default()
}

/// The answer to a call whose path is in no table, when neither path nor header names a model. Its
/// body is not looked at: a path that nothing serves must not wake a model.
pub fn unlisted(method: &str, path: &str) -> Rejection {
    let without_body = matches!(method, "GET" | "HEAD" | "DELETE");
    if without_body && path.starts_with("/v1/") { Rejection::ModelMissing } else { not_found(path) }
}

fn not_found(path: &str) -> Rejection {
    Rejection::PathNotFound { path: path.to_owned(), nearest: nearest::nearest(path) }
}

fn allowed(method: &str, methods: &'static str) -> Result<(), Rejection> {
    if methods == method || methods.split(", ").any(|allowed| allowed == method) {
        return Ok(());
    }
    Err(Rejection::MethodNotAllowed { method: method.to_owned(), allow: methods })
}
