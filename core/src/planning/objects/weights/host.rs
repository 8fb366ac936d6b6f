//! Which folders of the nodes a Model may mount. Whoever may write a Model must not thereby read or write
//! whatever lies on a node.

use std::path::Path;

use crate::planning::objects::{Refusal, Settings};
use crate::sources::RelativePath;

/// Whether a Model may mount this folder of a node.
pub(in crate::planning) fn host_folder_allowed(path: &str, settings: &Settings) -> bool {
    let plain = path.strip_prefix('/').is_some_and(|rest| RelativePath::parse(rest).is_ok());
    plain && settings.host_folders.iter().any(|folder| Path::new(path).starts_with(folder))
}

pub(in crate::planning) fn not_allowed(field: &str, path: &str, settings: &Settings) -> Refusal {
    let allowed = settings.host_folders.join(", ");
    let message = format!(
        "`{path}` is no folder of the nodes that models may mount; use one below {allowed}, or have \
         the controller allow it"
    );
    Refusal::field(field, &message)
}
