//! A path leads to one place, and what an engine is asked for is a part of what was asked for here.

use flexinfer_core::openai::paths::{Asked, locate, unlisted};
use flexinfer_core::openai::query;

use crate::cut;

const METHODS: [&str; 4] = ["GET", "POST", "DELETE", "HEAD"];
const NAME: &str = "org/name:8b &=%?\u{e9}";

pub(crate) fn check(input: &[u8]) {
    let (number, rest) = cut(input);
    let Ok(target) = std::str::from_utf8(rest) else { return };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let method = METHODS.get(number % METHODS.len()).copied().unwrap_or("GET");
    if path.starts_with('/') {
        for known in [true, false] {
            place(method, path, known);
        }
    }
    let renamed = query::with_model(query, NAME);
    if query::model(query).is_ok_and(|model| model.is_some()) {
        assert_eq!(query::model(&renamed), Ok(Some(NAME.to_owned())), "{renamed}");
    }
}

fn place(method: &str, path: &str, known: bool) {
    let place = locate(path, |name| known && name == "org/name");
    let dialect = place.dialect();
    let _ = flexinfer_core::openai::error_body(dialect, &unlisted(method, path), None);
    let Ok(Asked::Engine(call)) = place.asked(method) else { return };
    assert!(call.path.starts_with('/'), "{}", call.path);
    // With nothing behind its name a model is asked for its root.
    assert!(call.path == "/" || path.ends_with(call.path), "{path} is asked as {}", call.path);
    if call.operation.is_none() && !call.path.contains('%') {
        let collapsed: Vec<&str> = call.path.split('/').filter(|part| !part.is_empty()).collect();
        assert_ne!(collapsed, ["v1", "chat", "completions"], "a second door");
    }
    assert!(call.path.split('/').all(|part| part != ".." && part != "."), "{}", call.path);
    match &call.model {
        Some(model) => assert!(!model.is_empty() && path.starts_with("/model/"), "{path}"),
        None => assert_eq!(call.path, path),
    }
}
