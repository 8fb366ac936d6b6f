//! Names of models inside paths. A name is decoded exactly once, and the path that goes to the
//! engine is never decoded at all.

use percent_encoding::percent_decode_str;

/// A name of more parts than this is not looked for, since each more is a look-up.
const MOST_PARTS: usize = 8;

/// `name` decoded once: `org%2Fname` is `org/name`, and `org%252Fname` is `org%2Fname`.
pub(super) fn decoded(name: &str) -> String {
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// Cuts what follows `/model/` into the model's name and the path for the engine, which begins with
/// `/`. The longest known name wins. Where none is known the name ends where a `listed` path begins,
/// else at `/v1/` or the first slash, so that the answer names what the client most likely meant.
pub(super) fn cut(
    rest: &str,
    knows: impl Fn(&str) -> bool,
    listed: impl Fn(&str) -> bool,
) -> Option<(String, &str)> {
    let slashes = rest.match_indices('/').map(|(at, _)| at);
    let ends: Vec<usize> = slashes.chain([rest.len()]).take(MOST_PARTS).collect();
    let cut_at = |end: usize| {
        let (name, path) = rest.split_at_checked(end)?;
        (!name.is_empty()).then(|| (decoded(name), if path.is_empty() { "/" } else { path }))
    };
    let known = ends.iter().rev().filter_map(|end| cut_at(*end)).find(|(name, _)| knows(name));
    let meant = || ends.iter().filter_map(|end| cut_at(*end)).find(|(_, path)| listed(path));
    known.or_else(meant).or_else(|| cut_at(rest.find("/v1/").or(ends.first().copied())?))
}

/// Whether the engine could take `path` for one that leads out of where it is, percent-encoded or
/// not.
pub(super) fn has_dot_segment(path: &str) -> bool {
    decoded(path).split(['/', '\\']).any(|segment| matches!(segment, "." | ".."))
}

/// `path` as an engine that is not strict reads it: decoded once, with single slashes and none at its
/// end, in small letters. `None` if that is what it is.
pub(super) fn plain(path: &str) -> Option<String> {
    let decoded = decoded(path).to_ascii_lowercase();
    let parts = decoded.split('/').filter(|part| !part.is_empty());
    let plain: String = parts.flat_map(|part| ["/", part]).collect();
    (plain != path).then_some(plain)
}
