//! Files that bear their own SHA-256 as a name, which a copy can be checked against.

use std::path::Path;

/// The SHA-256, in lower-case hex, of a file that lies at `path`, where its place tells: a blob of
/// the hub's cache (`blobs/<sha256>`) or of Ollama's (`blobs/sha256-<sha256>`).
pub fn named_digest(path: &Path) -> Option<&str> {
    let in_blobs = path.parent()?.file_name()? == "blobs";
    let name = path.file_name()?.to_str()?;
    let digest = name.strip_prefix("sha256-").unwrap_or(name);
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (in_blobs && digest.len() == 64 && digest.bytes().all(is_hex)).then_some(digest)
}
