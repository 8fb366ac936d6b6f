//! Weights that one node hands to another: how a file is named there, how it is told from another state of
//! itself, and which part of it is meant.

use std::ops::Range;

use super::Modified;
use crate::sources::RelativePath;

/// The longest part that is handed over at once: its digest has to be made before its first byte leaves.
pub const LONGEST_PART: u64 = 64 << 20;

/// A file of a model's weights, by the names that every node knows it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The folder of the model: `<namespace>/<model>`.
    pub model: RelativePath,
    /// The file below it.
    pub file: RelativePath,
}

impl Asked {
    /// The file that `path`, such as `models/llama/model.safetensors`, means; `None` if it cannot be one.
    /// Records of the loader and unfinished files are nobody's business.
    pub fn of(path: &str) -> Option<Self> {
        let path = RelativePath::parse(path).ok()?;
        let mut names = path.names();
        let (namespace, model) = (names.next()?, names.next()?);
        let file = RelativePath::parse(&names.collect::<Vec<_>>().join("/")).ok()?;
        if file.names().any(|name| name.starts_with('.')) {
            return None;
        }
        Some(Self { model: RelativePath::parse(&format!("{namespace}/{model}")).ok()?, file })
    }
}

/// What tells one state of a file from another on every node: copies bear the time of their source. In the
/// form of an entity tag.
pub fn tag(length: u64, modified: Modified) -> String {
    format!("\"{length}-{}-{}\"", modified.seconds, modified.nanoseconds)
}

/// The part of a file of `length` bytes that a `Range` header means; `None` if it means no single part of it
/// that can be handed over at once.
pub fn part(header: &str, length: u64) -> Option<Range<u64>> {
    let (first, last) = header.trim().strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    let end = last.checked_add(1)?;
    let asked = end.checked_sub(first).filter(|asked| *asked > 0)?;
    (end <= length && asked <= LONGEST_PART).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_namespace_model_and_path() {
        let asked = Asked::of("models/llama/sub/a.bin").unwrap();
        assert_eq!((asked.model.as_str(), asked.file.as_str()), ("models/llama", "sub/a.bin"));
    }

    #[test]
    fn nothing_leads_out_of_a_models_folder_or_into_our_records() {
        for path in [
            "",
            "models",
            "models/llama",
            "models/llama/",
            "/etc/passwd",
            "models/../../etc/passwd",
            "models/llama/../../../etc/passwd",
            "models//a",
            "models/llama/.flash/files.json",
            "models/llama/.17-3-0.flash-tmp",
            "models/llama/sub/.git/config",
            "models\\llama\\a",
        ] {
            assert_eq!(Asked::of(path), None, "{path}");
        }
    }

    #[test]
    fn a_part_lies_within_the_file_and_is_not_too_long() {
        assert_eq!(part("bytes=0-9", 10), Some(0..10));
        assert_eq!(part("bytes=5-5", 10), Some(5..6));
        for header in
            ["bytes=0-10", "bytes=5-4", "bytes=-5", "bytes=5-", "bytes=0-1,3-4", "", "items=0-1"]
        {
            assert_eq!(part(header, 10), None, "{header}");
        }
        assert_eq!(part("bytes=0-67108863", u64::MAX), Some(0..LONGEST_PART));
        assert_eq!(part("bytes=0-67108864", u64::MAX), None);
        assert_eq!(part("bytes=0-18446744073709551615", u64::MAX), None);
    }

    #[test]
    fn another_state_of_a_file_has_another_tag() {
        let at = |seconds, nanoseconds| Modified { seconds, nanoseconds };
        assert_eq!(tag(7, at(1, 2)), "\"7-1-2\"");
        assert_ne!(tag(7, at(1, 2)), tag(8, at(1, 2)));
        assert_ne!(tag(7, at(1, 2)), tag(7, at(1, 3)));
    }
}
