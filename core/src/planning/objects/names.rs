//! Names and label values that Kubernetes accepts, made of what a user wrote: readable where they fit, cut
//! and told apart by a hash where they do not (K8S-07). Equal texts give equal names for ever: an object
//! that is found under another name would be made a second time.

use sha2::{Digest as _, Sha256};

/// The longest name of a Service, a Job's pod label or a label's value, in bytes.
pub const LONGEST: usize = 63;

/// Hexadecimal digits that tell cut names apart.
const HASH: usize = 10;

/// The name of the objects of the model called `model`: Deployment and Service.
pub fn object(model: &str) -> String {
    with_suffix(model, "")
}

/// The name of an object that belongs to `model`, such as `-cache` for its claim.
pub fn with_suffix(model: &str, suffix: &str) -> String {
    let room = LONGEST.saturating_sub(suffix.len());
    let fits = model.len() <= room && is_service_name(model);
    let stem = if fits { model.to_owned() } else { cut(model, room) };
    format!("{stem}{suffix}")
}

/// `text` as the value of a label: itself where it may be one.
pub fn label_value(text: &str) -> String {
    if is_label_value(text) { text.to_owned() } else { cut(text, LONGEST) }
}

/// Whether a label may have this value.
pub fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    text.len() <= LONGEST
        && text.bytes().all(inner)
        && ends(text.bytes().next())
        && ends(text.bytes().last())
}

/// Whether an object of most kinds may be called so (RFC 1123 subdomain).
pub fn is_object_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        label.bytes().all(|byte| letter(byte) || byte == b'-')
            && label.bytes().next().is_some_and(letter)
            && label.bytes().last().is_some_and(letter)
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// Whether a Service may be called so (RFC 1035 label).
pub fn is_service_name(text: &str) -> bool {
    text.len() <= LONGEST
        && is_object_name(text)
        && !text.contains('.')
        && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Whether every version of Kubernetes takes this as the name of an environment variable.
pub fn is_variable_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(inner)
}

/// The beginning of `text` with a hash of all of it: lower case, no more than `room` bytes.
fn cut(text: &str, room: usize) -> String {
    let letters = text.chars().map(|letter| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9') => letter,
        _ => '-',
    });
    let readable: String = letters.collect();
    let readable = readable.trim_matches('-');
    // A Service's name begins with a letter.
    let prefix = if readable.starts_with(|first: char| first.is_ascii_digit()) { "m-" } else { "" };
    let stem: String =
        format!("{prefix}{readable}").chars().take(room.saturating_sub(HASH + 1)).collect();
    let stem = stem.trim_end_matches('-');
    let stem = if stem.is_empty() { "m" } else { stem };
    format!("{stem}-{}", hash(text.as_bytes(), HASH))
}

/// The first `digits` hexadecimal digits of the SHA-256 of `bytes`.
pub(super) fn hash(bytes: &[u8], digits: usize) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(digits).map(hexadecimal).collect()
}

fn hexadecimal(half: u8) -> char {
    char::from_digit(u32::from(half), 16).unwrap_or('0')
}
