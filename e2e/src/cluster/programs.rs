//! Where etcd and Kubernetes' programs lie.

use std::env;
use std::path::PathBuf;

use super::error::StartError;

/// The folder of the programs, by the variable that Kubernetes' own test tools read too.
pub(super) fn folder() -> Result<PathBuf, StartError> {
    let folder = env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty());
    folder.map(PathBuf::from).ok_or(StartError::NoPrograms)
}
