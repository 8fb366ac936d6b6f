//! Files that an engine reads at its start, such as ComfyUI's list of model folders.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use super::metadata::{metadata, stamped};
use super::{Blueprint, Refusal, names};
use crate::backends::Launch;

impl Blueprint<'_> {
    /// The ConfigMap with the files of the engine; `None` where it has none.
    pub fn files(&self) -> Result<Option<ConfigMap>, Refusal> {
        let files = self.launch()?.files;
        if files.is_empty() {
            return Ok(None);
        }
        let data: BTreeMap<_, _> =
            files.into_iter().map(|file| (file.path, file.contents)).collect();
        let map = ConfigMap {
            metadata: metadata(self.model, self.effective, self.files_name(), "engine-files"),
            data: Some(data),
            ..ConfigMap::default()
        };
        Ok(Some(stamped(map)))
    }

    /// The name of that ConfigMap.
    pub(super) fn files_name(&self) -> String {
        names::with_suffix(&self.effective.id.name, "-files")
    }
}

/// A text that is another one when a file changes.
pub(super) fn files_hash(launch: &Launch) -> String {
    let files: Vec<_> = launch.files.iter().map(|file| (&file.path, &file.contents)).collect();
    names::hash(serde_json::json!(files).to_string().as_bytes(), 16)
}
