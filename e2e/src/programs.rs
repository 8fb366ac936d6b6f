//! The programs that this workspace builds, which lie beside the tests.

use std::env;
use std::path::PathBuf;

/// Where cargo puts the program `name` of a package of this workspace: beside the folder of the test's own.
/// It is there if somebody built it.
pub(crate) fn built(name: &str) -> Option<PathBuf> {
    let test = env::current_exe().ok()?;
    Some(test.parent()?.parent()?.join(name))
}
