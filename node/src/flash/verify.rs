//! Checks a copy against what it should be.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flexinfer_core::loading::named_digest;
use sha2::{Digest as _, Sha256};

use super::error::FlashError;

/// Whether the copy `file` has the SHA-256 that the name of `source` tells; also if it tells none.
pub(super) fn check_digest(
    file: &File,
    source: &Path,
    stopped: &AtomicBool,
) -> Result<(), FlashError> {
    let Some(wanted) = named_digest(source) else { return Ok(()) };
    let found = sha256(file, stopped).map_err(|error| FlashError::reading(source, error))?;
    match found {
        None => Err(FlashError::Stopped),
        Some(found) if found == wanted => Ok(()),
        Some(found) => {
            let wanted = wanted.to_owned();
            Err(FlashError::Digest { path: source.to_path_buf(), wanted, found })
        }
    }
}

/// `None` if it was stopped.
fn sha256(mut file: &File, stopped: &AtomicBool) -> io::Result<Option<String>> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    file.rewind()?;
    loop {
        let read = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { break };
        digest.update(part);
        if stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    let hex = digest.finalize().iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        let _infallible = write!(text, "{byte:02x}");
        text
    });
    Ok(Some(hex))
}
