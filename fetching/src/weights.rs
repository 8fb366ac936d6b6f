//! Looks at files of weights before an engine does (LOAD-04).

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flexinfer_core::activation::{Failure, Reason};
use flexinfer_core::sources::weights::{
    Format, Malformed, SAFETENSORS_PREFIX, check_gguf, check_safetensors, is_never_weights,
    safetensors_header, shards,
};

use rustix::io::Errno;

use crate::failures;

/// Whether the weights at `path`, a file or a folder, are whole as far as their format tells.
/// For weights that somebody else put there; what is downloaded is checked on the way. Blocks.
pub fn check_weights(path: &Path) -> Result<(), Failure> {
    count_whole(path).map(|_| ())
}

/// The same, for whoever asks for nothing else: it is an error as well if nothing at all is there. Tells how many files
/// were looked at; none where all are of formats that nobody can check. Blocks.
pub fn check_weights_alone(path: &Path) -> Result<usize, Failure> {
    let whole = count_whole(path)?;
    if whole > 0 || may_hold_weights(path)? {
        return Ok(whole);
    }
    Err(Failure::new(
        Reason::BadSource,
        format!("{} holds no weights, so that there is nothing to check", path.display()),
    ))
}

/// Whether there is a file at `path`, or in a folder below it, that could be weights. Links are followed. What cannot be
/// looked at is an error only if there is no such file elsewhere.
fn may_hold_weights(path: &Path) -> Result<bool, Failure> {
    let is_never = |path: &Path| {
        path.file_name().is_some_and(|name| is_never_weights(&name.to_string_lossy()))
    };
    let mut unknown = None;
    let (mut open, mut seen) = (vec![path.to_path_buf()], HashSet::new());
    while let Some(place) = open.pop() {
        match look(&place) {
            Ok(Looked::File) if !is_never(&place) => return Ok(true),
            // A link may lead round in a circle.
            Ok(Looked::Folder { number, entries }) if seen.insert(number) => {
                open.extend(entries.into_iter().filter(|entry| !is_never(entry)));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
                let message =
                    format!("{} is a link that leads nowhere but in a circle", place.display());
                unknown = Some(Failure::new(Reason::BadSource, message));
            }
            Err(error) => unknown = Some(failures::of_file("reading", &place, &error)),
        }
    }
    unknown.map_or(Ok(false), Err)
}

/// What is somewhere, behind all links.
enum Looked {
    File,
    Folder { number: (u64, u64), entries: Vec<PathBuf> },
    Other,
}

fn look(path: &Path) -> io::Result<Looked> {
    let found = fs::metadata(path)?;
    if !found.is_dir() {
        return Ok(if found.is_file() { Looked::File } else { Looked::Other });
    }
    let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    Ok(Looked::Folder { number: (found.dev(), found.ino()), entries })
}

/// How many files there are of a format that can be checked, if all of them are whole.
fn count_whole(path: &Path) -> Result<usize, Failure> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            Reason::BadSource,
            format!("{} does not exist; check spec.source", path.display()),
        ),
        _ => failures::of_file("reading", path, &error),
    })?;
    if metadata.is_file() {
        return check_one(path);
    }
    let entries = fs::read_dir(path).map_err(|error| failures::of_file("reading", path, &error))?;
    let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file());
    files.map(|path| check_one(&path)).sum()
}

/// One if the file is of a format that can be checked, else none.
fn check_one(path: &Path) -> Result<usize, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let found =
        check_file(path, &name).map_err(|error| failures::of_file("reading", path, &error))?;
    found.map_err(|malformed| broken(path, &malformed))?;
    check_shards(path)?;
    Ok(usize::from(Format::of(&name).is_some()))
}

/// The failure of weights that are wrong although nobody damaged them on the way.
pub(crate) fn broken(path: &Path, malformed: &Malformed) -> Failure {
    Failure::new(
        Reason::BadSource,
        format!("{} is damaged: {malformed}; get it again", path.display()),
    )
}

/// Whether the file at `path`, which is or will be called `name`, is whole.
pub(crate) fn check_file(path: &Path, name: &str) -> io::Result<Result<(), Malformed>> {
    let Some(format) = Format::of(name) else { return Ok(Ok(())) };
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    match format {
        Format::Safetensors => {
            let mut prefix = [0; SAFETENSORS_PREFIX];
            if length < prefix.len() as u64 {
                return Ok(Err(Malformed::TooShort { length }));
            }
            file.read_exact(&mut prefix)?;
            let size = match safetensors_header(prefix, length) {
                Ok(size) => size,
                Err(malformed) => return Ok(Err(malformed)),
            };
            let mut header = vec![0; size];
            file.read_exact(&mut header)?;
            Ok(check_safetensors(&header, length))
        }
        Format::Gguf => check_gguf(&mut BufReader::new(file), length),
        Format::SafetensorsIndex => Ok(shards(&fs::read(path)?).map(|_| ())),
    }
}

/// Whether the files that an index names lie beside it. An index of which none is there is left
/// over from another format, and nobody reads it.
pub(crate) fn check_shards(index: &Path) -> Result<(), Failure> {
    let name = index.file_name().unwrap_or_default().to_string_lossy();
    if Format::of(&name) != Some(Format::SafetensorsIndex) {
        return Ok(());
    }
    let text = fs::read(index).map_err(|error| failures::of_file("reading", index, &error))?;
    let named = shards(&text).map_err(|malformed| broken(index, &malformed))?;
    let folder = index.parent().unwrap_or(Path::new("."));
    let (there, missing) =
        named.iter().partition::<Vec<_>, _>(|shard| shard.below(folder).is_file());
    match missing.first() {
        Some(shard) if !there.is_empty() => Err(Failure::new(
            Reason::BadSource,
            format!(
                "{} names {shard}, which is not there ({} of {} files are); the repository is \
                 incomplete, or hfAllowPatterns or hfIgnorePatterns leave it out",
                index.display(),
                there.len(),
                named.len()
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn weights_are_looked_for_behind_links_and_round_in_no_circle() {
        let top = tempfile::tempdir().unwrap();
        let (llama, store) = (top.path().join("llama"), top.path().join("store/v3"));
        for folder in [&llama, &store] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink("../store/v3", llama.join("current")).unwrap();
        symlink(&llama, store.join("round")).unwrap();
        symlink("nowhere", llama.join("broken")).unwrap();
        fs::write(llama.join("README"), "about").unwrap();
        let failure = check_weights_alone(&llama).unwrap_err();
        assert!(failure.message.contains("nothing to check"), "{failure}");
        fs::write(store.join("model.bin"), "weights").unwrap();
        assert_eq!(check_weights_alone(&llama), Ok(0));
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_empty() {
        let top = tempfile::tempdir().unwrap();
        symlink("itself", top.path().join("itself")).unwrap();
        let failure = check_weights_alone(top.path()).unwrap_err();
        assert!(failure.message.contains("itself"), "{failure}");
        assert_eq!(failure.reason, Reason::BadSource, "it will be so the next time, too");
        fs::write(top.path().join("model.bin"), "weights").unwrap();
        assert_eq!(check_weights_alone(top.path()), Ok(0));
    }
}
