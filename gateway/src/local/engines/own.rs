//! The folders that one gateway writes alone. Downloads are shared by all that use a data folder; two
//! gateways that write the same log, or the same engine's files, would spoil both.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::local::{Claim, ClaimError};

/// More gateways than this with one data folder are refused.
const MOST: u32 = 100;

/// The folders that are this gateway's own, claimed for as long as this lives.
#[derive(Clone, Debug)]
pub struct Own {
    /// What the engines of each model say.
    pub logs: PathBuf,
    /// Files that engines need.
    pub engines: PathBuf,
    _claim: Arc<Claim>,
}

impl Own {
    /// The first free pair of folders in `data`: `logs` and `engines`, then `logs-2` and `engines-2`.
    pub fn claim(data: &Path) -> Result<Self, ClaimError> {
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let folder = |name: &str| data.join(format!("{name}{suffix}"));
            let (logs, engines) = (folder("logs"), folder("engines"));
            // Should it fail, so does the claim, which says why.
            let _ = std::fs::create_dir_all(&logs);
            match Claim::on(&logs) {
                Ok(claim) => return Ok(Self { logs, engines, _claim: Arc::new(claim) }),
                Err(ClaimError::Taken { .. }) if number < MOST => number += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_gateways_with_one_data_folder_write_apart() {
        let data = tempfile::tempdir().unwrap();
        let first = Own::claim(data.path()).unwrap();
        let second = Own::claim(data.path()).unwrap();
        assert_eq!(first.logs, data.path().join("logs"));
        assert_eq!(second.logs, data.path().join("logs-2"));
        assert_eq!(second.engines, data.path().join("engines-2"));
        drop(first);
        assert_eq!(Own::claim(data.path()).unwrap().logs, data.path().join("logs"));
    }

    #[test]
    fn a_data_folder_that_cannot_be_written_is_named() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("file");
        std::fs::write(&file, "").unwrap();
        let refused = Own::claim(&file).unwrap_err().to_string();
        assert!(refused.contains("file/logs"), "{refused}");
    }
}
