//! What whole files of weights look like, so that a cut or damaged one is told before an engine
//! dies of it (LOAD-04). Pure: the caller reads the bytes that are asked for.

mod gguf;

use std::collections::{BTreeMap, BTreeSet};

pub use gguf::check_gguf;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::RelativePath;

/// The formats that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A length, a JSON header of that length, then the tensors it describes.
    Safetensors,
    /// The JSON that says which file holds which tensor.
    SafetensorsIndex,
    /// llama.cpp's own.
    Gguf,
}

/// How a file of weights is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// Shorter than its own beginning.
    #[error("it has only {length} bytes")]
    TooShort { length: u64 },
    /// Something else, such as a page that tells of an error.
    #[error("it does not begin like a {0:?} file")]
    OtherFormat(Format),
    /// A header longer than any tool accepts, or than the file.
    #[error("its header would be {header} bytes long in a file of {length}")]
    HeaderTooLong { header: u64, length: u64 },
    /// The header is not what the format says.
    #[error("its header cannot be read: {0}")]
    Header(#[from] serde_json::Error),
    /// A tensor that ends before it begins.
    #[error("its header describes a tensor that ends before it begins")]
    Backwards,
    /// Cut, or with something behind its end.
    #[error("it has {length} bytes and its header describes {described}")]
    OtherLength { length: u64, described: u64 },
    /// An index that names a file outside of its folder.
    #[error("it names a file that would leave its folder: {0}")]
    Outside(#[from] super::BadSource),
}

/// Whether what has this name is certainly no weights: what is hidden, what a file system keeps for itself, and what only
/// people read. Of all others nobody knows: there are engines whose weights are JSON or text, and some that need none
/// beside what describes them.
pub fn is_never_weights(name: &str) -> bool {
    const READ: [&str; 3] = ["readme", "licence", "license"];
    const ENDS: [&str; 4] = ["", "md", "rst", "txt"];
    let lower = name.to_ascii_lowercase();
    let (stem, end) = lower.rsplit_once('.').unwrap_or((&lower, ""));
    let is_read = READ.iter().any(|read| stem.starts_with(read)) && ENDS.contains(&end);
    lower.starts_with('.') || lower == "lost+found" || is_read
}

impl Format {
    /// The format that a file of this name has, if it is one that can be checked.
    pub fn of(file_name: &str) -> Option<Self> {
        let lower = file_name.to_ascii_lowercase();
        let ends = |end: &str| lower.ends_with(end);
        match () {
            () if ends(".safetensors.index.json") => Some(Self::SafetensorsIndex),
            () if ends(".safetensors") => Some(Self::Safetensors),
            () if ends(".gguf") => Some(Self::Gguf),
            () => None,
        }
    }
}

/// How many bytes precede a safetensors header: its length, little-endian.
pub const SAFETENSORS_PREFIX: usize = 8;

/// The longest header that the format's own tools read.
const LONGEST_HEADER: u64 = 100_000_000;

/// The bytes of the header that follows `prefix` in a file of `length` bytes; safe to allocate.
pub fn safetensors_header(
    prefix: [u8; SAFETENSORS_PREFIX],
    length: u64,
) -> Result<usize, Malformed> {
    let header = u64::from_le_bytes(prefix);
    let fits = header <= LONGEST_HEADER && header.saturating_add(8) <= length;
    let too_long = Malformed::HeaderTooLong { header, length };
    if !fits {
        return Err(too_long);
    }
    usize::try_from(header).map_err(|_| too_long)
}

/// Whether `header` describes exactly a file of `length` bytes.
pub fn check_safetensors(header: &[u8], length: u64) -> Result<(), Malformed> {
    #[derive(Deserialize)]
    struct Tensor {
        data_offsets: (u64, u64),
    }
    let entries = serde_json::from_slice::<BTreeMap<String, &RawValue>>(header)?;
    let mut end = 0;
    for (name, entry) in entries {
        if name == "__metadata__" {
            continue;
        }
        let (first, last) = serde_json::from_str::<Tensor>(entry.get())?.data_offsets;
        if last < first {
            return Err(Malformed::Backwards);
        }
        end = end.max(last);
    }
    let header = u64::try_from(header.len()).unwrap_or(u64::MAX);
    let described = header.saturating_add(8).saturating_add(end);
    if described == length { Ok(()) } else { Err(Malformed::OtherLength { length, described }) }
}

/// The files that an index says hold the tensors, relative to the index's own folder.
pub fn shards(index: &[u8]) -> Result<BTreeSet<RelativePath>, Malformed> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let index = serde_json::from_slice::<Index>(index)?;
    let shards = index.weight_map.values().collect::<BTreeSet<_>>();
    Ok(shards.into_iter().map(|name| RelativePath::parse(name)).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] =
        br#"{"__metadata__":{"data_offsets":"x"},"a":{"dtype":"F32","data_offsets":[0,16]}}"#;

    #[test]
    fn load_04_the_length_must_be_what_the_header_describes() {
        let whole = 8 + HEADER.len() as u64 + 16;
        assert!(check_safetensors(HEADER, whole).is_ok());
        assert!(check_safetensors(HEADER, whole - 1).is_err(), "cut by one byte");
        assert!(check_safetensors(HEADER, whole + 1).is_err(), "one byte too many");
        assert!(check_safetensors(b"{}", 10).is_ok(), "no tensor at all is a whole file");
        assert!(check_safetensors(b"{", 9).is_err(), "cut in the header");
        assert!(check_safetensors(br#"{"a":{"data_offsets":[2,1]}}"#, 36).is_err());
    }

    #[test]
    fn load_04_a_header_length_is_never_believed_beyond_the_file() {
        assert!(safetensors_header((1_u64 << 63).to_le_bytes(), 1 << 40).is_err());
        assert!(safetensors_header(u64::MAX.to_le_bytes(), u64::MAX).is_err());
        assert!(safetensors_header(100_000_001_u64.to_le_bytes(), 1 << 40).is_err());
        assert!(safetensors_header(100_u64.to_le_bytes(), 107).is_err());
        for header in [0, 99_994, 99_999, 100_000] {
            let read = safetensors_header(u64::to_le_bytes(header), header + 8).unwrap();
            assert_eq!(read as u64, header);
        }
    }

    #[test]
    fn an_index_names_each_of_its_files_once() {
        let index =
            br#"{"metadata":{},"weight_map":{"a":"x-1.safetensors","b":"x-1.safetensors"}}"#;
        assert_eq!(shards(index).unwrap().len(), 1);
        assert!(shards(br#"{"weight_map":{"a":"../x"}}"#).is_err());
        assert!(shards(b"{}").is_err());
    }

    #[test]
    fn only_what_is_certainly_no_weights_is_none() {
        for name in
            [".gitattributes", "README.md", "readme", "LICENSE", "LICENCE-MIT.txt", "lost+found"]
        {
            assert!(is_never_weights(name), "{name}");
        }
        for name in ["model.json", "vectors.txt", "config.json", "licenses.onnx", "a", "model.bin"]
        {
            assert!(!is_never_weights(name), "{name}");
        }
    }

    #[test]
    fn names_tell_the_format() {
        for (name, format) in [
            ("model.safetensors", Some(Format::Safetensors)),
            ("model.safetensors.index.json", Some(Format::SafetensorsIndex)),
            ("Q4.GGUF", Some(Format::Gguf)),
            ("config.json", None),
        ] {
            assert_eq!(Format::of(name), format, "{name}");
        }
    }
}
