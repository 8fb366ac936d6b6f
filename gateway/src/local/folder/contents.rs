//! What the files of a folder contain, read in one go.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flexinfer_core::manifest::LARGEST_FILE;

/// The files that may define Models, with their bytes, or why these cannot be had.
pub(super) type Files = BTreeMap<PathBuf, Result<Vec<u8>, String>>;

/// Reads every `*.yaml` and `*.yml` directly in `folder`, through symbolic links, except hidden ones:
/// editors keep their copies under such names, and Kubernetes the versions of a mounted ConfigMap.
pub(super) fn read(folder: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !may_define_models(&path) {
            continue;
        }
        match bytes_of(&path) {
            Ok(Some(bytes)) => drop(files.insert(path, Ok(bytes))),
            // A folder called x.yaml, or a file that went away since it was listed.
            Ok(None) => {}
            Err(error) => drop(files.insert(path, Err(error.to_string()))),
        }
    }
    Ok(files)
}

pub(super) fn may_define_models(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    yaml && !hidden
}

fn bytes_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Looked at before it is opened: opening a pipe waits for somebody to write into it.
    let found = match fs::metadata(path) {
        Ok(found) => found,
        // A link that leads nowhere is told; a file that is gone is simply gone.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if found.is_dir() {
        return Ok(None);
    }
    if !found.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    // One byte too many is enough for the parser to refuse it.
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_visible_yaml_files_are_read_also_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a.yaml", "b.yml", ".hidden.yaml", "c.yaml~", "d.json", ".a.yaml.swp"] {
            fs::write(path(name), name).unwrap();
        }
        fs::create_dir(path("folder.yaml")).unwrap();
        fs::create_dir(path("..2024")).unwrap();
        fs::write(path("..2024/e.yaml"), "e").unwrap();
        symlink("..2024", path("..data")).unwrap();
        symlink("..data/e.yaml", path("e.yaml")).unwrap();
        symlink("nowhere", path("lost.yaml")).unwrap();
        let files = read(folder.path()).unwrap();
        let names: Vec<_> =
            files.keys().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.yaml", "b.yml", "e.yaml", "lost.yaml"]);
        assert_eq!(files[&path("e.yaml")], Ok(b"e".to_vec()));
        assert!(files[&path("lost.yaml")].is_err());
    }

    #[test]
    fn what_is_no_plain_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/dev/zero", folder.path().join("zero.yaml")).unwrap();
        let files = read(folder.path()).unwrap();
        let told: Vec<_> = files.values().collect();
        assert_eq!(told, [&Err("it is no plain file".to_owned())]);
    }
}
