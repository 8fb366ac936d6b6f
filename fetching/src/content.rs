//! The running digest of a file's content.

use flexinfer_core::sources::download::{Digest, RemoteFile};

/// A digest being computed, of the kind that the hub gave.
pub(crate) enum Content {
    Sha256(Box<sha2::Sha256>),
    GitBlob(Box<sha1::Sha1>),
    /// The hub gave none: there is nothing to compare with.
    Unknown,
}

impl Content {
    /// Of no bytes yet.
    pub(crate) fn of(file: &RemoteFile) -> Self {
        match (&file.digest, file.size) {
            (Some(Digest::Sha256(_)), _) => Self::Sha256(Box::default()),
            (Some(Digest::GitBlob(_)), Some(size)) => {
                use sha1::Digest as _;
                // Git names a file by its content behind this line.
                Self::GitBlob(Box::new(sha1::Sha1::new_with_prefix(format!("blob {size}\0"))))
            }
            (Some(Digest::GitBlob(_)) | None, _) => Self::Unknown,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => sha2::Digest::update(&mut **hash, bytes),
            Self::GitBlob(hash) => sha1::Digest::update(&mut **hash, bytes),
            Self::Unknown => {}
        }
    }

    /// Whether the bytes so far are what `digest` names; nothing contradicts no digest.
    pub(crate) fn is(&self, digest: Option<&Digest>) -> bool {
        let found = match self {
            Self::Sha256(hash) => hex(&sha2::Digest::finalize((**hash).clone())),
            Self::GitBlob(hash) => hex(&sha1::Digest::finalize((**hash).clone())),
            Self::Unknown => return true,
        };
        digest.is_none_or(|digest| digest.hex() == found)
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flexinfer_core::sources::RelativePath;

    fn file(digest: Digest) -> RemoteFile {
        RemoteFile {
            path: RelativePath::parse("x").unwrap(),
            size: Some(12),
            digest: Some(digest),
            url: reqwest::Url::parse("https://hub.test/x").unwrap(),
        }
    }

    #[test]
    fn a_small_file_is_known_by_its_git_name() {
        let file = file(Digest::GitBlob("3b18e512dba79e4c8300dd08aeb37f8e728b8dad".to_owned()));
        let mut content = Content::of(&file);
        content.update(b"hello ");
        content.update(b"world\n");
        assert!(content.is(file.digest.as_ref()), "as `git hash-object` names it");
        content.update(b"!");
        assert!(!content.is(file.digest.as_ref()));
    }

    #[test]
    fn a_large_file_is_known_by_its_sha256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let file = file(Digest::Sha256(empty.to_owned()));
        assert!(Content::of(&file).is(file.digest.as_ref()));
    }
}
