//! Whether a program is on this machine.

use std::env;
use std::path::Path;

/// Whether there is nothing that `program` could mean: a name that no folder of `PATH` has, or a
/// path, seen from `folder`, that leads nowhere. What is there may still not run.
pub(super) fn missing(program: &str, folder: &Path) -> bool {
    if program.contains('/') {
        return !folder.join(program).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    !env::split_paths(&path).any(|place| place.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_in_path_and_a_path_from_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("engine.sh"), "").unwrap();
        assert!(!missing("sh", folder.path()));
        assert!(missing("no-such-program-anywhere", folder.path()));
        assert!(!missing("./engine.sh", folder.path()));
        assert!(missing("./other.sh", folder.path()));
        assert!(!missing("/bin/sh", folder.path()));
    }
}
