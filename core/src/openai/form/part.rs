//! The headers of a form's part.

use crate::openai::content_type::{Parameters, split};

/// Whether a part with these headers is the field `model`. A file is no field, whatever its name.
pub(super) fn names_model(headers: &[u8]) -> bool {
    let headers = String::from_utf8_lossy(headers);
    let disposition = headers.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let Some((kind, parameters)) = disposition.map(split) else {
        return false;
    };
    let (mut named, mut file) = (false, false);
    for (name, value) in Parameters(parameters) {
        named |= name == "name" && value == "model";
        file |= name == "filename" || name == "filename*";
    }
    kind.eq_ignore_ascii_case("form-data") && named && !file
}
