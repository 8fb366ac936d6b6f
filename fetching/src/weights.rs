//! Looks at files of weights before an engine does (LOAD-04).

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use flexinfer_core::activation::{Failure, Reason};
use flexinfer_core::sources::weights::{
    Format, Malformed, SAFETENSORS_PREFIX, check_gguf, check_safetensors, is_never_weights,
    safetensors_header, shards,
};

use crate::failures;

/// Folders lie no deeper than this in one another where weights are looked for.
const DEEPEST: usize = 16;

/// Whether the weights at `path`, a file or a folder, are whole as far as their format tells.
/// For weights that somebody else put there; what is downloaded is checked on the way. Blocks.
pub fn check_weights(path: &Path) -> Result<(), Failure> {
    count_whole(path).map(|_| ())
}

/// The same, for whoever asks for nothing else: it is an error as well if there is nothing that could be weights. Tells
/// how many files were looked at; none where all are of formats that nobody can check. Blocks.
pub fn check_weights_alone(path: &Path) -> Result<usize, Failure> {
    let whole = count_whole(path)?;
    if whole > 0 || may_hold_weights(path, DEEPEST) {
        return Ok(whole);
    }
    Err(Failure::new(
        Reason::BadSource,
        format!("{} holds no weights, so that there is nothing to check", path.display()),
    ))
}

/// Whether there is something at `path`, or in a folder below it, that could be weights.
fn may_hold_weights(path: &Path, depth: usize) -> bool {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if path.is_file() {
        return !is_never_weights(&name(path));
    }
    let mut entries = fs::read_dir(path).into_iter().flatten().flatten();
    depth > 0
        && entries.any(|entry| {
            let path = entry.path();
            // Links to folders may lead round in a circle.
            let inner = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (inner || path.is_file())
                && !is_never_weights(&name(&path))
                && may_hold_weights(&path, depth - 1)
        })
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
